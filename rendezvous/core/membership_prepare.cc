#include <algorithm>
#include <utility>

#include "rendezvous/base/check.h"
#include "rendezvous/core/membership_state.h"
#include "rendezvous/core/ranks.h"

namespace elastic::internal {

// P25. While the installed generation trains, waiting newcomers are put into a prepared successor
// that its ranks enter by themselves at a commit. Nothing is prepared before all have entered
// (V15), nor from the first finished report on (P29).
void Membership::State::Prepare() {
  if (!installed || !all_entered || finish_seen || Broken() || closed >= installed->id.number ||
      !NumberLeft()) {
    return;
  }
  const std::vector<const Worker*> newcomers = Newcomers();
  if (newcomers.empty() && prepared.empty()) {
    return;
  }
  std::vector<Candidate> candidates;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    candidates.push_back(CandidateOf(*members[rank], static_cast<int32_t>(rank)));
  }
  for (const Worker* worker : newcomers) {
    if (std::ssize(candidates) < spec.max_np) {
      candidates.push_back(CandidateOf(*worker, -1));
    }
  }
  const bool grows = candidates.size() > members.size();
  // A successor that was sent cannot be taken back, since somebody may be about to enter it. If a
  // newcomer of it is gone, another one, if need be with the old members only, takes its place.
  if (prepared.empty() ? !grows : SameWorkers(prepared.back(), candidates)) {
    return;
  }
  Roster roster{.id = {},
                .kind = GenerationKind::kPrepared,
                .parent = installed->id.number,
                .resume = {},
                .entries = AssignRanks(std::move(candidates))};
  roster.id = {incarnation, IssueNumber(), RosterDigest(roster)};
  lineage.Add(roster.id.number, roster.kind, roster.parent, {});
  prepared.push_back(std::move(roster));
  PersistNow();
  publish_all = true;
}

bool Membership::State::SameWorkers(const Roster& roster,
                                    const std::vector<Candidate>& candidates) {
  return roster.entries.size() == candidates.size() &&
         std::ranges::all_of(candidates, [&](const Candidate& candidate) {
           return roster.Find(candidate.incarnation) != nullptr;
         });
}

// The boundary of a prepared successor was passed by `witness`. The roster stays as it was sent, so
// that its identity does; the version it resumed from is kept beside it, once a word shows it.
void Membership::State::InstallLearned(size_t prepared_index, const Worker& witness) {
  ELASTIC_CHECK(prepared_index < prepared.size());
  const bool whole = !Broken();
  const int size_before = static_cast<int>(members.size());
  parent = std::move(*installed);
  installed = std::move(prepared[prepared_index]);
  prepared.erase(prepared.begin() + static_cast<std::ptrdiff_t>(prepared_index));
  GiveUpPrepared(StrCat("generation ", ToString(installed->id.number), " was entered instead"));
  all_entered = false;
  anew_since.reset();
  installed_at = now;
  IndexMembers();
  ForgetPast();
  LearnResume(witness);
  if (whole) {
    Reset reset;
    reset.view = {.from = parent->id.number,
                  .to = installed->id.number,
                  .size_before = size_before,
                  .size_after = installed->size()};
    reset.view.resumed = learned_resume;
    reset.causes = {{.text = StrCat("growth from ", size_before, " to ", installed->size())}};
    reset.installed = now;
    AddReset(std::move(reset));
  } else if (Reset* open = OpenReset()) {
    open->view.from = installed->id.number;  // the loss under way is one of this generation
  }
  PersistNow();
  publish_all = true;
  Say(Severity::kInfo,
      Announcement(*installed, "entered at a commit of generation " + ToString(parent->id.number)));
}

// Their numbers are used up; without a word about it people would look for those generations.
void Membership::State::GiveUpPrepared(const std::string& why) {
  for (const Roster& next : std::exchange(prepared, {})) {
    Say(Severity::kInfo,
        StrCat("generation ", ToString(next.id.number), " was prepared and is given up: ", why));
  }
}

// Before its first commit in the new generation a member holds exactly the boundary version. A
// newcomer that has not received it yet holds nothing, or, offered again, something older.
void Membership::State::LearnResume(const Worker& witness) {
  const StateVersion version = witness.report.held.version;
  const bool was_member = parent && parent->Find(witness.report.incarnation) != nullptr;
  if (lineage.ResumeOf(installed->id.number).valid() || !version.valid() ||
      version.generation == installed->id.number || !was_member ||
      !witness.in_generation(installed->id) || !lineage.OnLine(version, parent->id.number)) {
    return;
  }
  lineage.LearnBoundary(installed->id.number, version);
  learned_resume = witness.report.held;
  if (!resets.empty() && resets.back().view.to == installed->id.number) {
    resets.back().view.resumed = learned_resume;
  }
}

}  // namespace elastic::internal
