#include <algorithm>

#include "rendezvous/core/membership_state.h"

// Equal crashes are told once, with their ranks: a program that fails on all of 200 ranks gives one
// line, not 200. The first is told at once, with all that the same report brought; those that
// follow it are gathered, since other hosts report a little later.
namespace elastic::internal {

void Membership::State::NoteCrash(const Worker& worker, std::string how) {
  const auto found =
      std::ranges::find_if(crashes, [&](const Crashes& known) { return known.how == how; });
  Crashes& equal =
      found != crashes.end()
          ? *found
          : crashes.emplace_back(Crashes{.how = std::move(how), .who = {}, .due = now});
  equal.who.push_back(NameOf(worker));
}

// `all`: what was gathered belongs to a generation, or a job, that is over.
void Membership::State::TellCrashes(bool all) {
  for (Crashes& equal : crashes) {
    if (!equal.who.empty() && (all || now >= equal.due)) {
      Say(Severity::kWarning, StrCat(SomeNames(equal.who), " ", equal.how));
      equal.who.clear();
      equal.due = now + kCrashesGathered;
    }
  }
  std::erase_if(crashes, [&](const Crashes& equal) {
    return equal.who.empty() && (all || now >= equal.due);
  });
}

}  // namespace elastic::internal
