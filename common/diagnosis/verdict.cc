#include "common/diagnosis/verdict.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace llmctl::diagnosis {
namespace {

// A sentence that names more ranks than this helps nobody.
constexpr size_t kNamedMax = 4;

std::string Seconds(double seconds) { return absl::StrFormat("%.1f s", seconds); }

std::string Ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return absl::StrCat("rank ", ranks[0]);
  size_t named = std::min(ranks.size(), kNamedMax);
  std::string text = absl::StrCat("ranks ", absl::StrJoin(ranks.begin(), ranks.begin() + named, ", "));
  return ranks.size() > named ? absl::StrCat(text, " and ", ranks.size() - named, " more") : text;
}

bool Stopped(const RankView& view) { return view.process == "T" || view.process == "t"; }
bool Gone(const RankView& view) { return view.process.empty() || view.process == "Z" || view.process == "X"; }

const char* ProcessNote(const RankView& view) {
  if (!view.exit.empty()) return "";
  if (Stopped(view)) return "; its process is stopped (SIGSTOP, or a debugger)";
  if (Gone(view)) return "; its process is gone";
  if (view.process == "D") return "; its process waits uninterruptibly in the kernel (a disk or network file system)";
  return "";
}

const CollectivePosition* PositionIn(const RankView& view, const std::string& group) {
  auto it = std::find_if(view.collectives.begin(), view.collectives.end(),
                         [&](const CollectivePosition& position) { return position.group == group; });
  return it == view.collectives.end() ? nullptr : &*it;
}

// A rank whose collective failed had waited in it: for a peer that is gone.
bool Waits(const CollectivePosition& position) { return position.state != "done"; }

// What the rank does instead of entering the collective that others wait in.
std::string LastSeen(const RankView& view) {
  if (!view.exit.empty()) return absl::StrCat("it ", view.exit);
  for (const CollectivePosition& position : view.collectives) {
    if (position.state == "entered") return absl::StrCat("it is still in ", CollectiveText(position), ", entered ",
                                             Seconds(position.seconds), " ago", ProcessNote(view));
  }
  if (view.activity.empty()) return absl::StrCat("it has said nothing of itself", ProcessNote(view));
  std::string activity = view.activity == "training" ? "" : absl::StrCat(" (", view.activity, ")");
  return absl::StrCat("last seen ", view.where, activity, " ", Seconds(view.phase_seconds), " ago", ProcessNote(view));
}

std::string Name(const RankView& view) { return absl::StrCat("rank ", view.rank, " (", view.node, ")"); }

// The ranks of one group, as far as they have entered any collective of it.
struct Group {
  std::string name;
  std::vector<const RankView*> views;
  int64_t newest = 0;  // number of the newest collective that a rank waits in; 0: none waits

  std::vector<const RankView*> Waiting() const {
    std::vector<const RankView*> out;
    for (const RankView* view : views) {
      const CollectivePosition* position = PositionIn(*view, name);
      if (position != nullptr && Waits(*position) && position->number == newest) out.push_back(view);
    }
    return out;
  }
  std::vector<const RankView*> NotEntered() const {
    std::vector<const RankView*> out;
    for (const RankView* view : views) {
      const CollectivePosition* position = PositionIn(*view, name);
      if (position == nullptr || position->number < newest) out.push_back(view);
    }
    return out;
  }
};

std::vector<Group> GroupsOf(const std::vector<const RankView*>& views) {
  std::set<std::string> names;
  for (const RankView* view : views) {
    for (const CollectivePosition& position : view->collectives) names.insert(position.group);
  }
  std::vector<Group> groups;
  for (const std::string& name : names) {
    Group group = {.name = name, .views = views};
    for (const RankView* view : views) {
      const CollectivePosition* position = PositionIn(*view, name);
      if (position != nullptr && Waits(*position)) group.newest = std::max(group.newest, position->number);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

double LongestWait(const std::vector<const RankView*>& waiting, const std::string& group) {
  double longest = 0;
  for (const RankView* view : waiting) longest = std::max(longest, PositionIn(*view, group)->seconds);
  return longest;
}

std::vector<int> Numbers(const std::vector<const RankView*>& views) {
  std::vector<int> ranks;
  for (const RankView* view : views) ranks.push_back(view->rank);
  return ranks;
}

Verdict BlameAbsent(const Group& group, const std::vector<const RankView*>& waiting,
                    const std::vector<const RankView*>& absent) {
  const CollectivePosition& collective = *PositionIn(*waiting.front(), group.name);
  std::string who = absent.size() == 1 ? Name(*absent.front()) : Ranks(Numbers(absent));
  bool one = waiting.size() == 1;
  std::string text = absl::StrCat(who, " never entered ", CollectiveText(collective), ", which ",
                                  one ? Name(*waiting.front()) : absl::StrCat(waiting.size(), " ranks"),
                                  one ? " has" : " have", " waited in for ",
                                  Seconds(LongestWait(waiting, group.name)));
  for (size_t i = 0; i < std::min(absent.size(), kNamedMax); ++i) {
    absl::StrAppend(&text, "; ", absent.size() == 1 ? "" : absl::StrCat("rank ", absent[i]->rank, ": "),
                    LastSeen(*absent[i]));
  }
  return {std::move(text), Numbers(absent)};
}

// All ranks are in the newest collective.
Verdict BlameWaiting(const Group& group, const std::vector<const RankView*>& waiting) {
  std::map<std::string, std::vector<int>> calls;
  std::vector<const RankView*> unable;
  for (const RankView* view : waiting) {
    const CollectivePosition& position = *PositionIn(*view, group.name);
    calls[absl::StrCat(position.operation, " ", position.site, " of ", position.count, " elements")].push_back(
        view->rank);
    // One whose collective has failed is gone because of another.
    if (position.state == "entered" && (Stopped(*view) || Gone(*view))) unable.push_back(view);
  }
  const CollectivePosition& collective = *PositionIn(*waiting.front(), group.name);
  std::string since = Seconds(LongestWait(waiting, group.name));
  if (calls.size() > 1) {
    std::string text = absl::StrCat("the ranks do not agree on collective #", group.newest, ": ");
    text += absl::StrJoin(calls, ", ", [](std::string* out, const auto& call) {
      absl::StrAppend(out, Ranks(call.second), call.second.size() == 1 ? " is in " : " are in ", call.first);
    });
    return {absl::StrCat(text, "; their programs have diverged"), {}};
  }
  if (!unable.empty()) {
    const RankView& first = *unable.front();
    std::string how = first.exit.empty() ? absl::StrCat("cannot go on", ProcessNote(first)) : first.exit;
    std::string text = absl::StrCat("all ranks have entered ", CollectiveText(collective), " and wait in it for ",
                                    since, ", but ", Name(first), " ", how);
    return {std::move(text), Numbers(unable)};
  }
  return {absl::StrCat("all ranks have entered ", CollectiveText(collective), " and wait in it for ", since,
                       ": look at the network between their hosts"),
          {}};
}

Verdict BlameLongest(const std::vector<const RankView*>& views) {
  const RankView* longest = views.front();
  for (const RankView* view : views) {
    auto key = [](const RankView& v) { return std::pair(Stopped(v) || Gone(v), v.phase_seconds); };
    if (key(*view) > key(*longest)) longest = view;
  }
  return {absl::StrCat("no rank waits in a collective; ", Name(*longest), ": ", LastSeen(*longest)), {longest->rank}};
}

}  // namespace

std::string CollectiveText(const CollectivePosition& position) {
  return absl::StrCat(position.operation, " #", position.number, " ", position.site);
}

Verdict FindCulprit(const std::vector<RankView>& views, int world_size) {
  std::vector<const RankView*> sorted;
  std::set<int> seen;
  for (const RankView& view : views) {
    if (seen.insert(view.rank).second) sorted.push_back(&view);
  }
  std::sort(sorted.begin(), sorted.end(), [](const RankView* a, const RankView* b) { return a->rank < b->rank; });
  std::vector<int> silent;
  for (int rank = 0; rank < world_size; ++rank) {
    if (!seen.contains(rank)) silent.push_back(rank);
  }
  if (sorted.empty()) return {absl::StrCat("nothing is known of ", Ranks(silent)), std::move(silent)};

  Verdict verdict = BlameLongest(sorted);
  for (const Group& group : GroupsOf(sorted)) {
    std::vector<const RankView*> waiting = group.Waiting();
    if (waiting.empty()) continue;
    std::vector<const RankView*> absent = group.NotEntered();
    verdict = absent.empty() ? BlameWaiting(group, waiting) : BlameAbsent(group, waiting, absent);
    if (!absent.empty()) break;
  }
  if (!silent.empty()) {
    absl::StrAppend(&verdict.text, "; nothing is known of ", Ranks(silent));
    verdict.suspects.insert(verdict.suspects.end(), silent.begin(), silent.end());
    std::sort(verdict.suspects.begin(), verdict.suspects.end());
  }
  return verdict;
}

}  // namespace llmctl::diagnosis
