#include "coordinator/runtime/rendezvous_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmctl::runtime {
namespace {

using ::testing::HasSubstr;

const GenerationId kGeneration{JobId("j-1"), 1, 1};

// Asks and expects the answer at once.
StoreAnswer Ask(RendezvousStore& store, const StoreOperation& operation, const GenerationId& id = kGeneration,
                int64_t request = 0) {
  std::vector<StoreAnswer> answers;
  store.Do(id, {.link = 1, .request = request}, operation,
           [&](const StoreAnswer& answer) { answers.push_back(answer); });
  EXPECT_EQ(answers.size(), 1u);
  return answers.empty() ? StoreAnswer{} : answers[0];
}

TEST(RendezvousStore, WaitIsAnsweredWhenTheKeyIsSet) {
  RendezvousStore store({});
  std::vector<std::string> answers;
  for (int rank = 1; rank <= 2; ++rank) {
    store.Do(kGeneration, {.link = rank}, StoreWait{"addr"},
             [&](const StoreAnswer& answer) { answers.push_back(answer.value); });
  }
  ASSERT_TRUE(answers.empty());

  Ask(store, StoreSet{"addr", "10.0.0.1"});

  EXPECT_THAT(answers, ::testing::ElementsAre("10.0.0.1", "10.0.0.1"));
  EXPECT_EQ(Ask(store, StoreWait{"addr"}).value, "10.0.0.1");
}

TEST(RendezvousStore, GenerationsDoNotSeeEachOther) {
  RendezvousStore store({});
  Ask(store, StoreSet{"addr", "old"});

  EXPECT_FALSE(Ask(store, StoreGet{"addr"}, {JobId("j-1"), 1, 2}).found);
  EXPECT_FALSE(Ask(store, StoreGet{"addr"}, {JobId("j-2"), 1, 1}).found);
}

TEST(RendezvousStore, KeysOfAnOlderGenerationGoWhenTheNextOneComes) {
  RendezvousStore store({});
  Ask(store, StoreSet{"addr", "of another job"}, {JobId("j-2"), 1, 1});
  size_t others = store.bytes();
  Ask(store, StoreSet{"addr", "old"});

  Ask(store, StoreGet{"addr"}, {JobId("j-1"), 2, 2});

  EXPECT_EQ(store.bytes(), others);
}

TEST(RendezvousStore, DroppedGenerationAnswersItsWaitsAndFreesItsBytes) {
  RendezvousStore store({});
  Ask(store, StoreSet{"a", "1"});
  std::string error;
  store.Do(kGeneration, {.link = 1}, StoreWait{"b"}, [&](const StoreAnswer& answer) { error = answer.error; });

  store.Drop(kGeneration);

  EXPECT_THAT(error, HasSubstr("over"));
  EXPECT_EQ(store.bytes(), 0u);
}

TEST(RendezvousStore, WaitsOfAClosedLinkAreForgotten) {
  RendezvousStore store({});
  int gone = 0, here = 0;
  store.Do(kGeneration, {.link = 1}, StoreWait{"a"}, [&](const StoreAnswer&) { ++gone; });
  store.Do(kGeneration, {.link = 2}, StoreWait{"a"}, [&](const StoreAnswer&) { ++here; });

  store.DropLink(1);
  Ask(store, StoreSet{"a", "1"});

  EXPECT_EQ(gone, 0);
  EXPECT_EQ(here, 1);
}

TEST(RendezvousStore, AddCountsAndWakesWaiters) {
  RendezvousStore store({});
  std::string seen;
  store.Do(kGeneration, {.link = 1}, StoreWait{"n"}, [&](const StoreAnswer& answer) { seen = answer.value; });

  EXPECT_EQ(Ask(store, StoreAdd{"n", 2}).number, 2);
  EXPECT_EQ(Ask(store, StoreAdd{"n", 3}).number, 5);
  Ask(store, StoreSet{"text", "x"});

  EXPECT_EQ(seen, "2");
  EXPECT_THAT(Ask(store, StoreAdd{"text", 1}).error, HasSubstr("not a number"));
}

TEST(RendezvousStore, CompareSetFollowsC10d) {
  RendezvousStore store({});

  EXPECT_EQ(Ask(store, StoreCompareSet{"k", "expected", "new"}).value, "expected");  // missing key
  EXPECT_EQ(Ask(store, StoreCompareSet{"k", "", "first"}).value, "first");
  EXPECT_EQ(Ask(store, StoreCompareSet{"k", "other", "second"}).value, "first");
  EXPECT_EQ(Ask(store, StoreCompareSet{"k", "first", "second"}).value, "second");
  EXPECT_TRUE(Ask(store, StoreDelete{"k"}).found);
  EXPECT_FALSE(Ask(store, StoreGet{"k"}).found);
}

// An agent that has lost its link does not know whether the question had arrived.
TEST(RendezvousStore, RequestThatIsAskedAgainIsAppliedOnce) {
  RendezvousStore store({});
  const GenerationId next{JobId("j-1"), 2, 2};

  EXPECT_EQ(Ask(store, StoreAdd{"n", 2}, kGeneration, 7).number, 2);
  EXPECT_EQ(Ask(store, StoreAdd{"n", 3}, kGeneration, 8).number, 5);
  EXPECT_EQ(Ask(store, StoreAdd{"n", 2}, kGeneration, 7).number, 2);
  EXPECT_EQ(Ask(store, StoreGet{"n"}).value, "5");
  EXPECT_EQ(Ask(store, StoreCompareSet{"k", "", "mine"}, kGeneration, 9).value, "mine");
  Ask(store, StoreSet{"k", ""});
  EXPECT_EQ(Ask(store, StoreCompareSet{"k", "", "mine"}, kGeneration, 9).value, "mine");
  EXPECT_EQ(Ask(store, StoreGet{"k"}).value, "");

  EXPECT_EQ(Ask(store, StoreAdd{"n", 2}, next, 7).number, 2) << "requests are numbered in each generation anew";
}

TEST(RendezvousStore, RefusedRequestMayBeAskedAgain) {
  RendezvousStore store({});
  Ask(store, StoreSet{"n", "x"});
  EXPECT_THAT(Ask(store, StoreAdd{"n", 1}, kGeneration, 7).error, HasSubstr("not a number"));
  Ask(store, StoreDelete{"n"});

  EXPECT_EQ(Ask(store, StoreAdd{"n", 1}, kGeneration, 7).number, 1);
}

TEST(RendezvousStore, FloodIsRefusedAndRoomComesBack) {
  RendezvousStore store({.generation_bytes_max = 4096, .total_bytes_max = 6000});
  const GenerationId other{JobId("j-2"), 1, 1};

  EXPECT_THAT(Ask(store, StoreSet{"big", std::string(5000, 'x')}).error, HasSubstr("full"));
  EXPECT_EQ(Ask(store, StoreSet{"big", std::string(3000, 'x')}).error, "");
  EXPECT_THAT(Ask(store, StoreSet{"big", std::string(3000, 'x')}, other).error, HasSubstr("full"));
  Ask(store, StoreSet{"big", "small now"});

  EXPECT_EQ(Ask(store, StoreSet{"big", std::string(3000, 'x')}, other).error, "");
}

}  // namespace
}  // namespace llmctl::runtime
