#include "worker/data/filters/filter_settings.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::data {
namespace {

using testing::HasSubstr;

TEST(FilterSettings, FineWebsAreValidAndAskForNoTerminalMark) {
  FilterSettings settings = FilterSettings::FineWeb();

  EXPECT_TRUE(settings.Validate().ok()) << settings.Validate().message();
  EXPECT_FALSE(settings.c4->terminal_mark_required);
  EXPECT_TRUE(FilterSettings().Validate().ok());
}

TEST(FilterSettings, NamesAllFaultsAtOnce) {
  FilterSettings settings = FilterSettings::FineWeb();
  settings.gopher_quality->words_min = 10;
  settings.gopher_quality->words_max = 5;
  settings.gopher_quality->stop_words = {{"de", {"und"}}};
  settings.gopher_repetition->line_fraction_max = -0.1;
  settings.fineweb->short_line_fraction_max = std::numeric_limits<double>::quiet_NaN();
  settings.c4->line_words_min = 0;

  absl::Status status = settings.Validate();

  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {"words_min/max", "stop_words", "line_fraction_max is -0.1", "short_line_fraction_max is nan",
                           "line_words_min is 0"}) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

TEST(MeasurementOf, ChangesWithWhatIsMeasuredAndNotWithThresholds) {
  FilterSettings settings = FilterSettings::FineWeb();
  std::string measurement = MeasurementOf(settings);

  settings.gopher_quality->words_min = 7;
  settings.c4->refuse_lorem_ipsum = false;
  EXPECT_EQ(MeasurementOf(settings), measurement);

  settings.fineweb->short_line_characters = 31;
  EXPECT_NE(MeasurementOf(settings), measurement);
  settings = FilterSettings::FineWeb();
  settings.gopher_quality->stop_words["de"] = {"und"};
  EXPECT_NE(MeasurementOf(settings), measurement);
  settings = FilterSettings::FineWeb();
  settings.mode = FilterMode::kDatatrove;
  EXPECT_NE(MeasurementOf(settings), measurement);
}

}  // namespace
}  // namespace llmctl::data
