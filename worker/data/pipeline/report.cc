#include "worker/data/pipeline/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

#include "common/base/status.h"

namespace llmctl::data {
namespace {

using nlohmann::json;

json CountJson(const Count& count) { return {{"documents", count.documents}, {"bytes", count.bytes}}; }

json DroppedJson(const std::map<std::string, Count>& dropped) {
  json out = json::object();
  for (const auto& [reason, count] : dropped) out[reason] = CountJson(count);
  return out;
}

// [[least size, documents], ...] of the buckets that are not empty.
json HistogramJson(const SizeHistogram& histogram) {
  json out = json::array();
  for (int b = 0; b < SizeHistogram::kBuckets; ++b) {
    if (histogram.counts()[b] > 0) out.push_back({b == 0 ? 0 : int64_t{1} << b, histogram.counts()[b]});
  }
  return out;
}

json GroupJson(const Tally::Group& group) {
  return {{"read", CountJson(group.read)},
          {"kept", CountJson(group.kept)},
          {"dropped", DroppedJson(group.dropped)},
          {"bytes_read", HistogramJson(group.read_bytes)},
          {"bytes_kept", HistogramJson(group.kept_bytes)}};
}

Tally::Group Total(const Tally& tally) {
  Tally sum;
  for (const auto& [name, group] : tally.groups()) {
    Tally one;
    one.GroupOf("", "") = group;
    sum.Merge(one);
  }
  return sum.GroupOf("", "");
}

std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Megabytes(int64_t bytes) { return absl::StrFormat("%.2f MB", bytes / 1e6); }

std::string Row(const std::vector<std::string>& cells, const char* kind = "td") {
  std::string out = "<tr>";
  for (const std::string& cell : cells) absl::StrAppend(&out, "<", kind, ">", cell, "</", kind, ">");
  return out + "</tr>\n";
}

std::string SourcesTable(const CorpusReport& report) {
  std::string out = "<h2>By source and language</h2>\n<table>\n" +
                    Row({"source", "language", "read", "", "kept", "", "kept of bytes"}, "th");
  for (const auto& [name, group] : report.tally.groups()) {
    double share = group.read.bytes > 0 ? 100.0 * group.kept.bytes / group.read.bytes : 0;
    out += Row({Escaped(name.first), Escaped(name.second), absl::StrCat(group.read.documents),
                Megabytes(group.read.bytes), absl::StrCat(group.kept.documents), Megabytes(group.kept.bytes),
                absl::StrFormat("%.1f %%", share)});
  }
  return out + "</table>\n";
}

std::string ReasonsTable(const CorpusReport& report, const Tally::Group& total) {
  std::string out = "<h2>Dropped, by reason</h2>\n<table>\n" + Row({"reason", "documents", "text", "share"}, "th");
  for (const auto& [reason, count] : total.dropped) {
    double share = total.read.documents > 0 ? 100.0 * count.documents / total.read.documents : 0;
    out += Row({Escaped(reason), absl::StrCat(count.documents), Megabytes(count.bytes),
                absl::StrFormat("%.2f %%", share)});
  }
  out += "</table>\n<h2>Samples of what was dropped</h2>\n";
  for (const auto& [reason, samples] : report.tally.samples()) {
    absl::StrAppend(&out, "<h3>", Escaped(reason), "</h3>\n");
    for (const Sample& sample : samples) {
      std::string numbers;
      if (sample.measured != 0 || sample.threshold != 0) {
        numbers = absl::StrFormat(": measured %g, threshold %g", sample.measured, sample.threshold);
      }
      absl::StrAppend(&out, "<p>", Escaped(sample.place), sample.id.empty() ? "" : " ", Escaped(sample.id), numbers,
                      "</p><pre>", Escaped(sample.text), "</pre>\n");
    }
  }
  return out;
}

std::string Bars(absl::string_view title, const SizeHistogram& histogram, absl::string_view unit) {
  int64_t most = *std::max_element(histogram.counts().begin(), histogram.counts().end());
  std::string out = absl::StrCat("<h3>", title, "</h3>\n<table>\n");
  for (int b = 0; b < SizeHistogram::kBuckets; ++b) {
    int64_t count = histogram.counts()[b];
    if (count == 0) continue;
    int width = static_cast<int>(std::max<int64_t>(1, 300 * count / most));
    out += Row({absl::StrCat("from ", b == 0 ? 0 : int64_t{1} << b, " ", unit), absl::StrCat(count),
                absl::StrFormat("<div class=bar style=\"width:%dpx\"></div>", width)});
  }
  return out + "</table>\n";
}

}  // namespace

absl::StatusOr<CorpusReport> MakeReport(const Workspace& workspace, const std::vector<Segment>& segments) {
  const CorpusPlan& plan = workspace.plan();
  CorpusReport report;
  report.name = plan.config.name;
  report.files = static_cast<int64_t>(plan.files.size());
  report.input_bytes = plan.bytes;
  report.passed_over = plan.passed_over;
  for (const Segment& segment : segments) {
    LLM_ASSIGN_OR_RETURN(SegmentFooter footer, workspace.ReadFooter(segment));
    report.tally.Merge(footer.tally);
    LLM_ASSIGN_OR_RETURN(EncodedSegment encoded, ReadEncodedSegment(workspace, segment));
    report.tally.Merge(encoded.tally);
    for (const auto& [name, tokens] : encoded.groups) {
      GroupTokens& group = report.groups[name];
      group.documents += tokens.documents;
      group.tokens += tokens.tokens;
      for (int b = 0; b < SizeHistogram::kBuckets; ++b) group.lengths.counts()[b] += tokens.lengths.counts()[b];
    }
  }
  if (plan.config.exact_dedup) {
    for (size_t pass = 0; pass < plan.config.exact_dedup->units.size(); ++pass) {
      ExactPlan exact = workspace.PlanOfExact(static_cast<int>(pass), segments);
      LLM_ASSIGN_OR_RETURN(RepeatReader reader, RepeatReader::Open(exact, workspace.quick_files()));
      report.exact.emplace_back(plan.config.exact_dedup->units[pass], reader.summary());
    }
  }
  if (plan.config.near_dedup) {
    LLM_ASSIGN_OR_RETURN(DuplicateReader reader,
                         DuplicateReader::Open(workspace.PlanOfNear(segments), workspace.quick_files()));
    report.near.push_back(reader.summary());
  }
  return report;
}

json ReportJson(const CorpusReport& report) {
  json groups = json::array();
  for (const auto& [name, group] : report.tally.groups()) {
    json entry = GroupJson(group);
    entry["source"] = name.first;
    entry["language"] = name.second;
    groups.push_back(std::move(entry));
  }
  json tokens = json::object();
  for (const auto& [name, group] : report.groups) {
    tokens[name] = {
        {"documents", group.documents}, {"tokens", group.tokens}, {"lengths", HistogramJson(group.lengths)}};
  }
  json samples = json::object();
  for (const auto& [reason, list] : report.tally.samples()) {
    for (const Sample& sample : list) {
      samples[reason].push_back({{"place", sample.place},
                                 {"id", sample.id},
                                 {"measured", sample.measured},
                                 {"threshold", sample.threshold},
                                 {"text", sample.text}});
    }
  }
  json exact = json::object();
  for (const auto& [unit, summary] : report.exact) {
    exact[unit] = {{"documents", summary.documents}, {"units", summary.units}, {"repeats", summary.repeats}};
  }
  json near = nullptr;
  for (const NearSummary& summary : report.near) {
    near = {{"documents", summary.documents}, {"short_documents", summary.short_documents},
            {"clusters", summary.clusters},   {"clustered", summary.clustered},
            {"removed", summary.removed},     {"largest_cluster", summary.largest},
            {"candidates", summary.candidates}, {"pairs", summary.pairs}};
  }
  return {{"name", report.name},
          {"input", {{"files", report.files}, {"bytes", report.input_bytes}, {"passed_over", report.passed_over}}},
          {"total", GroupJson(Total(report.tally))},
          {"groups", std::move(groups)},
          {"counters", report.tally.counters()},
          {"exact_dedup", std::move(exact)},
          {"near_dedup", std::move(near)},
          {"tokens", std::move(tokens)},
          {"samples", std::move(samples)}};
}

std::string ReportHtml(const CorpusReport& report) {
  Tally::Group total = Total(report.tally);
  std::string out = absl::StrCat(
      "<!doctype html>\n<html lang=en><meta charset=utf-8><title>Corpus ", Escaped(report.name),
      "</title>\n<style>body{font:15px sans-serif;max-width:70em;margin:2em auto;padding:0 1em}"
      "table{border-collapse:collapse}td,th{padding:.15em .8em;text-align:right;border-bottom:1px solid #ddd}"
      "td:first-child,th:first-child{text-align:left}pre{background:#f4f4f4;padding:.6em;white-space:pre-wrap}"
      ".bar{height:.8em;background:#47a}</style>\n<h1>Corpus ",
      Escaped(report.name), "</h1>\n<p>", report.files, " files, ", Megabytes(report.input_bytes), ": ",
      total.read.documents, " documents of ", Megabytes(total.read.bytes), " read, ", total.kept.documents, " of ",
      Megabytes(total.kept.bytes), " kept.</p>\n");
  out += SourcesTable(report);
  out += Bars("Documents read, by size", total.read_bytes, "bytes");
  out += Bars("Documents kept, by size", total.kept_bytes, "bytes");
  out += ReasonsTable(report, total);
  if (!report.tally.counters().empty()) {
    out += "<h2>Counted on the way</h2>\n<table>\n";
    for (const auto& [name, count] : report.tally.counters()) out += Row({Escaped(name), absl::StrCat(count)});
    out += "</table>\n";
  }
  return out + "</html>\n";
}

}  // namespace llmctl::data
