#include <algorithm>
#include <limits>

#include "rendezvous/base/check.h"
#include "rendezvous/core/membership_state.h"

// Which numbers there are: issued, learnt from a predecessor's agents, and not believed (P1).
namespace elastic::internal {

namespace {
constexpr uint32_t kNumberMax = std::numeric_limits<uint32_t>::max();
// Generations whose line is remembered. A job that fails makes a commit at least every
// no_progress_limit of them, so nobody holds a version as old as that for long.
constexpr size_t kLineageKept = 4096;
}  // namespace

// Every number is on record before it is sent, so nobody can know a higher one. Only a server that
// lost its predecessor's record has to take the agents' word, each one's once and within a bound:
// whatever they name, numbers of its own are left.
GenerationNumber Membership::State::HighestKnown(const Host& host) const {
  const bool learns = host.outlived && relearning && !host.heard_here;
  return learns ? std::max(numbers_issued, GenerationNumber{kNumbersLearntMax}) : numbers_issued;
}

// Numbers seen anywhere have been issued, and are never issued again.
void Membership::State::LearnNumbers(const AgentReport& report, GenerationNumber highest) {
  ELASTIC_CHECK(report.closed <= highest);
  numbers_issued =
      std::max({numbers_issued, report.installed.number, report.prepared.number, report.closed});
  for (const Roster& roster : report.memory ? report.memory->rosters : std::vector<Roster>()) {
    numbers_issued = std::max(numbers_issued, roster.id.number);
  }
  for (const WorkerReport& worker : report.workers) {
    for (const GenerationNumber number : {worker.word.generation, worker.held.version.generation}) {
      numbers_issued = number <= highest ? std::max(numbers_issued, number) : numbers_issued;
    }
  }
  if (report.closed > closed) {
    closed = report.closed;
    publish_all = true;
  }
}

// An agent that has applied or closed what was never issued lets no worker enter what is issued
// next. A fresh one can, so this one is told to end; then the host is lost like any other.
bool Membership::State::RefuseStray(Host& host, const AgentReport& report,
                                    GenerationNumber highest) {
  GenerationNumber named =
      std::max({report.installed.number, report.prepared.number, report.closed});
  for (const Roster& roster : report.memory ? report.memory->rosters : std::vector<Roster>()) {
    named = std::max(named, roster.id.number);
  }
  if (named <= highest) {
    return false;
  }
  const std::string text =
      StrCat("the agent of host ", host.spec.name, " names generation ", ToString(named),
             ", but the newest that was issued is ", ToString(numbers_issued));
  Say(Severity::kWarning, text + ": it is refused, and its workers are lost");
  Emit(RefuseAgent{*host.connection,
                   InvalidArgumentError(text + ": end the workers and register anew")});
  host.connection.reset();
  host.stream_ended = now;
  return true;
}

// A worker can write its page, so a number there may be anything. One that was never issued shows
// that the page is damaged: its word counts for nothing any more, neither as proof of a commit nor
// of none, and the worker goes. What its agent itself knows (life, exit) stays true.
WorkerReport Membership::State::Believed(const WorkerReport& report, Worker& worker) {
  const GenerationNumber finished_in =
      report.finished ? report.finished->version.generation : GenerationNumber{};
  const GenerationNumber named =
      std::max({report.word.generation, report.held.version.generation, finished_in});
  if (named <= numbers_issued && !worker.stray) {
    return report;
  }
  WorkerReport believed = report;
  believed.word = worker.report.word;
  believed.generation = worker.report.generation;
  believed.entered = worker.report.entered;
  believed.finished = worker.report.finished;
  if (report.held.version.generation > numbers_issued) {
    believed.held = {};
  }
  if (!worker.stray) {
    worker.stray = true;
    StrayNumber(worker, report, named);
  }
  return believed;
}

void Membership::State::StrayNumber(Worker& worker, const WorkerReport& report,
                                    GenerationNumber named) {
  const WorkerIncarnation id = report.incarnation;
  const std::string cause =
      StrCat("names generation ", ToString(named), " on its control page, but the newest that was ",
             "issued is ", ToString(numbers_issued), ": the page is damaged");
  worker.report.slot = report.slot;  // may be the first that is heard of it
  worker.report.pid = report.pid;
  const bool goes = report.life != WorkerLife::kDead && !finished && !ending;
  Say(Severity::kWarning,
      StrCat(NameOf(worker), " ", cause, goes ? ", and the worker is removed" : ""));
  if (!goes) {
    return;
  }
  removed.insert(id);
  if (installed && installed->Find(id) != nullptr && !Marked(id)) {
    MarkLost(worker, cause);
  }
  worker.given_up = cause;
  publish_all = true;
}

bool Membership::State::NumberLeft() const { return numbers_issued.value < kNumberMax; }
bool Membership::State::AgentNumberLeft() const {
  return agents_issued.value < kNumberMax &&
         agents_issued.value < FirstAgentOf({incarnation.value + 1});
}

GenerationNumber Membership::State::IssueNumber() {
  ELASTIC_CHECK(NumberLeft());
  ++numbers_issued.value;
  ELASTIC_CHECK(numbers_issued > closed);
  return numbers_issued;
}

// Lives that are over, and that nothing names any more, would add up in a job that runs for weeks.
void Membership::State::ForgetPast() {
  ELASTIC_CHECK(prepared.empty());
  std::erase_if(removed, [&](const WorkerIncarnation& id) { return !workers.contains(id); });
  std::erase_if(heard, [&](const auto& entry) {
    const AgentIncarnation agent = entry.first;
    const auto worker = workers.lower_bound({agent, 0});
    const bool has_workers = worker != workers.end() && worker->first.agent == agent;
    return !has_workers &&
           std::ranges::none_of(hosts, [&](const Host& host) { return host.agent == agent; });
  });
  lineage.KeepNewest(kLineageKept);
}

void Membership::State::EndWithoutNumbers(std::string_view what) {
  End(static_cast<int>(JobExit::kWorkerFailure),
      StrCat(what, " have run out at ", kNumberMax, ": the job must be started anew"),
      StopMode::kGraceful);
}

}  // namespace elastic::internal
