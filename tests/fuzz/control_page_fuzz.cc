#include <deque>
#include <iterator>
#include <map>

#include "tests/fuzz/fuzz_host.h"
#include "tests/fuzz/fuzz_input.h"

// The control page, as a program that writes into it at will may leave it: the runtime's page is
// mapped in the user's process. The agent's core runs on real pages through PageView, as in the
// agent; the input is what workers write, what they say on their socket, and what a server of good
// sense tells this agent meanwhile. Nothing may end the agent or keep it from counting its
// processes and deaths right (the parts of A1, A3 and A4 of AgentCore that don't rest on honest
// words). What a page says of a dead worker's copy is served only as far as that memory reaches.

namespace elastic::internal {
namespace {

constexpr uint32_t kOps = 14;

class Story {
 public:
  explicit Story(FuzzInput& input) : input_(input) {}

  void Run() {
    host_.Feed(agent_event::Registered{FuzzHost::kAgent});
    host_.Feed(agent_event::DirectiveCame{MakeDirective()});
    while (!input_.empty() && !host_.ended()) {
      Turn();
      host_.CheckPromises();
    }
  }

 private:
  WorkerIncarnation AWorker() {
    const auto& processes = host_.processes();
    return processes.empty() ? WorkerIncarnation{FuzzHost::kAgent, 1}
                             : std::next(processes.begin(), input_.Below(processes.size()))->first;
  }
  GenerationId AGeneration() {
    if (input_.Below(4) == 0) {
      return {ServerIncarnation{input_.Take<uint64_t>()}, GenerationNumber{input_.Below(8)},
              input_.Take<uint64_t>()};
    }
    return input_.Below(2) == 0 ? installed_.id : prepared_.id;
  }
  Held AHeld() {
    return {
        {GenerationNumber{input_.Below(6)}, input_.Below(4)}, input_.Below(3), input_.Below(100)};
  }

  void Turn() {
    if (host_.processes().empty()) {
      host_.Pass(std::chrono::seconds(1));  // until one is spawned again
      host_.Feed(agent_event::TimePassed{});
    }
    if (host_.processes().empty()) {
      Tell();
      return;
    }
    switch (input_.Below(kOps)) {
      case 0:
        host_.Scribble(AWorker(), input_.Take<uint16_t>(), input_.Bytes(input_.Below(32)));
        break;
      case 1: WriteWord(); break;
      case 2: host_.WriteIdentity(AWorker(), AGeneration()); break;
      case 3:
        host_.WriteHeld(AWorker(), AHeld(), input_.Take<uint64_t>(), input_.Take<uint64_t>());
        break;
      case 4: host_.Feed(agent_event::PageRead{AWorker(), {}}); break;
      case 5: host_.Feed(agent_event::Ready{AWorker(), {"127.0.0.1", 1}}); break;
      case 6: host_.Feed(agent_event::Entered{AWorker(), AGeneration()}); break;
      case 7: host_.Feed(agent_event::Finished{AWorker(), AGeneration(), AHeld()}); break;
      case 8: host_.Feed(agent_event::Accused{AWorker(), {AGeneration(), AWorker()}}); break;
      case 9: End(); break;
      case 10: host_.Feed(agent_event::BeatMissed{AWorker(), "RTtZD"[input_.Below(5)]}); break;
      case 11: Tell(); break;
      case 12:
        host_.Pass(std::chrono::milliseconds(input_.Take<uint16_t>()));
        host_.Feed(agent_event::TimePassed{});
        break;
      default: host_.Report(); break;
    }
  }

  void WriteWord() {
    const WorkerIncarnation worker = AWorker();
    host_.WriteWord(worker, {GenerationNumber{input_.Below(6)}, input_.Below(4),
                             input_.Below(2) == 1, input_.Below(2) == 1});
  }

  void End() {
    const WorkerIncarnation worker = AWorker();
    switch (input_.Below(3)) {
      case 0: host_.Feed(agent_event::OwnerDied{worker, {}}); break;
      case 1: host_.Feed(agent_event::Leaving{worker}); break;
      default: host_.Exit(worker, {input_.Below(2) == 1, static_cast<int32_t>(input_.Below(3))});
    }
  }

  Roster MakeRoster(GenerationKind kind) {
    Roster roster;
    roster.kind = kind;
    roster.parent = GenerationNumber{number_};
    roster.resume = AHeld();
    for (const auto& [process, lives] : host_.processes()) {
      RosterEntry entry;
      entry.incarnation = process;
      entry.rank = static_cast<int32_t>(roster.entries.size());
      entry.host = "here";
      roster.entries.push_back(entry);
    }
    roster.id = {ServerIncarnation{1}, GenerationNumber{++number_}, RosterDigest(roster)};
    return roster;
  }

  Directive MakeDirective() {
    Directive directive;
    directive.server = ServerIncarnation{1};
    directive.agent = FuzzHost::kAgent;
    directive.sequence = ++sequence_;
    directive.acked_report = host_.reports();
    directive.slots = {0, 1};
    directive.closed = closed_;
    if (installed_.id.valid()) {
      directive.installed = installed_;
    }
    return directive;
  }

  // What a server may say: numbers grow, names are of this agent.
  void Tell() {
    const uint32_t what = input_.Take<uint8_t>();
    if ((what & 1) != 0) {
      installed_ = MakeRoster(GenerationKind::kInstalled);
      closed_ = (what & 2) != 0 ? installed_.parent : closed_;
    } else if ((what & 2) != 0) {
      prepared_ = MakeRoster(GenerationKind::kPrepared);
    }
    Directive directive = MakeDirective();
    if (prepared_.id.number > installed_.id.number) {
      directive.prepared = prepared_;
    }
    if ((what & 4) != 0) {
      closed_ = directive.closed = GenerationNumber{number_};
    }
    if ((what & 8) != 0) {
      directive.marks.push_back({GenerationNumber{number_}, AWorker()});
    }
    if ((what & 16) != 0) {
      directive.remove.push_back(AWorker());
    }
    if ((what & 32) != 0) {
      directive.offer_again.push_back(AWorker());
    }
    if ((what & 64) != 0) {
      directive.forget.push_back(AWorker());
    }
    if ((what & 128) != 0) {
      directive.finished = FinishRecord{installed_.id, AHeld()};
    }
    host_.Feed(agent_event::DirectiveCame{directive});
  }

  FuzzInput& input_;
  FuzzHost host_;
  Roster installed_;
  Roster prepared_;
  uint32_t number_ = 0;
  GenerationNumber closed_;
  uint64_t sequence_ = 0;
};

}  // namespace
}  // namespace elastic::internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  elastic::internal::FuzzInput input(data, size);
  elastic::internal::Story(input).Run();
  return 0;
}
