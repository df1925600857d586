#include "tests/fuzz/fuzz_host.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "tests/fuzz/fuzz_input.h"

namespace elastic::internal {

namespace {

constexpr size_t kStateBytes = 3 * 4096;

template <class T>
T OrEnd(StatusOr<T> value) {
  if (!value.ok()) {
    Broken(value.error().message());
  }
  return std::move(*value);
}

UniqueFd MakeMemory(const char* name, size_t bytes) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    Broken("no memory for a page");
  }
  return fd;
}

// One for all runs: it has a thread and a listener.
CopyServer& Copies() {
  static const std::unique_ptr<CopyServer> server =
      OrEnd(CopyServer::Start({.listen_address = "127.0.0.1", .job_id = "fuzz", .job_nonce = 1}));
  return *server;
}

}  // namespace

struct FuzzHost::Page {
  UniqueFd memory = MakeMemory("page", local::kControlPageBytes);
  UniqueFd state = MakeMemory("state", kStateBytes);
  UniqueFd bell{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::unique_ptr<PageView> view = OrEnd(PageView::Map(memory.get(), bell.get()));
  local::ControlPage* raw = static_cast<local::ControlPage*>(
      mmap(nullptr, local::kControlPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0));

  void Clear() {
    std::memset(static_cast<void*>(raw), 0, local::kControlPageBytes);
    raw->magic = local::kControlPageMagic;
    raw->version = local::kControlPageVersion;
  }
};

// Pages of runs that are over.
struct FuzzHost::Spare {
  static std::vector<std::unique_ptr<Page>>& Pages() {
    static std::vector<std::unique_ptr<Page>> pages;
    return pages;
  }
  static std::unique_ptr<Page> Take() {
    if (Pages().empty()) {
      return std::make_unique<Page>();
    }
    std::unique_ptr<Page> page = std::move(Pages().back());
    Pages().pop_back();
    return page;
  }
};

FuzzHost::FuzzHost() : now_(std::chrono::seconds(1)), core_({.host = "here", .slots = 2}, now_) {}

FuzzHost::~FuzzHost() {
  for (auto& [process, page] : pages_) {
    Copies().Forget(process);
    Spare::Pages().push_back(std::move(page));
  }
}

FuzzHost::Page* FuzzHost::Find(WorkerIncarnation process) {
  const auto found = pages_.find(process);
  return found == pages_.end() ? nullptr : found->second.get();
}

void FuzzHost::Feed(AgentEvent first) {
  std::vector<AgentEvent> events{std::move(first)};
  for (size_t i = 0; i < events.size(); ++i) {
    AgentEvent event = events[i];
    bool known = true;
    std::optional<WorkerIncarnation> ends;
    std::visit(
        [&]<class Event>(Event& of) {
          if constexpr (requires { of.reading; }) {
            Page* const page = Find(of.process);
            known = page != nullptr;
            if (known) {
              of.reading = page->view->Read();
              LookAsWorker(*page);
            }
            if constexpr (!std::is_same_v<Event, agent_event::PageRead>) {
              ends = of.process;
            }
          } else if constexpr (std::is_same_v<Event, agent_event::Leaving>) {
            ends = of.process;
          }
        },
        event);
    if (!known) {
      continue;
    }
    std::deque<AgentAction> queue;
    const auto append = [&queue](AgentActions actions) {
      queue.insert(queue.end(), actions.begin(), actions.end());
    };
    append(core_.Step(now_, event));
    while (!queue.empty()) {
      const AgentAction action = std::move(queue.front());
      queue.pop_front();
      std::vector<AgentEvent> at_once;
      Carry(action, at_once);
      for (AgentEvent& read : at_once) {
        if (auto* page = std::get_if<agent_event::PageRead>(&read)) {
          page->reading = Find(page->process)->view->Read();
          append(core_.Step(now_, read));
        } else {
          events.push_back(std::move(read));
        }
      }
    }
    if (ends) {
      ServeCopy(*ends);
    }
  }
}

void FuzzHost::Carry(const AgentAction& action, std::vector<AgentEvent>& more) {
  using namespace agent_action;
  if (const auto* fence = std::get_if<Fence>(&action)) {
    Find(fence->process)->view->Fence(fence->expected, now_);
    more.push_back(agent_event::PageRead{fence->process, {}});
  } else if (const auto* reset = std::get_if<Reset>(&action)) {
    Find(reset->process)->view->Reset(reset->from, reset->to, reset->generation);
    more.push_back(agent_event::PageRead{reset->process, {}});
  } else if (const auto* spawn = std::get_if<Spawn>(&action)) {
    std::unique_ptr<Page>& page = pages_[spawn->process];
    page = Spare::Take();
    page->Clear();
    Copies().Register(spawn->process, page->state.get());
    processes_[spawn->process] = true;
    more.push_back(agent_event::Spawned{spawn->process, 100 + spawn->process.counter});
  } else if (const auto* forget = std::get_if<Forget>(&action)) {
    Copies().Forget(forget->process);
    if (const auto found = pages_.find(forget->process); found != pages_.end()) {
      Spare::Pages().push_back(std::move(found->second));
      pages_.erase(found);
    }
    processes_.erase(forget->process);
  } else if (std::holds_alternative<agent_action::Report>(action)) {
    Report();
  } else if (std::holds_alternative<EndAgent>(action)) {
    ended_ = true;
  }
}

void FuzzHost::Report() { reports_ = core_.MakeReport(now_).sequence; }

void FuzzHost::Exit(WorkerIncarnation process, ExitStatus status) {
  if (processes_.erase(process) > 0) {  // a process ends once
    Feed(agent_event::Exited{process, status, {}});
  }
}

void FuzzHost::ServeCopy(WorkerIncarnation process) {
  const Page* const page = Find(process);
  if (page == nullptr) {
    return;
  }
  Copies().Serve(process, page->view->ReadHeld());
  const GenerationId asker{ServerIncarnation{1}, GenerationNumber{1}, 1};
  const StateSource::Answer answer = Copies().Offer(asker, process);
  if (answer.verdict == StateSource::Verdict::kNow) {
    unsigned sum = 0;
    for (const std::byte byte : answer.view.bytes) {
      sum += static_cast<unsigned>(byte);
    }
    Copies().Done(asker, process);
    if (sum != 0) {
      Broken("served other memory than the worker's");
    }
  }
}

// The same page through the library's eyes: another agent, or another program in the same process,
// may have written it.
void FuzzHost::LookAsWorker(const Page& page) const {
  const auto mapped = WorkerPage::Map(page.memory.get());
  if (mapped.ok()) {
    const CommitWord word = (*mapped)->word();
    if ((*mapped)->IdentityOf(word).number.value > word.generation.value) {
      Broken("an identity of another generation");
    }
    (*mapped)->held();
  }
}

void FuzzHost::Scribble(WorkerIncarnation process, size_t offset, std::span<const uint8_t> bytes) {
  if (Page* const page = Find(process)) {
    auto* const at = reinterpret_cast<uint8_t*>(page->raw);
    for (const uint8_t byte : bytes) {
      at[offset++ % sizeof(local::ControlPage)] = byte;
    }
  }
}

void FuzzHost::WriteWord(WorkerIncarnation process, CommitWord word) {
  if (Page* const page = Find(process)) {
    page->raw->commit_word = word.Pack();
  }
}

void FuzzHost::WriteIdentity(WorkerIncarnation process, const GenerationId& id) {
  if (Page* const page = Find(process)) {
    local::IdentitySlot& slot = page->raw->identity[id.number.value % local::kIdentitySlots];
    slot.server = id.server.value;
    slot.digest = id.roster_digest;
    slot.number = id.number.value;
  }
}

void FuzzHost::WriteHeld(WorkerIncarnation process, const Held& held, uint64_t offset,
                         uint64_t bytes) {
  if (Page* const page = Find(process)) {
    local::HeldSlot& slot = page->raw->held[page->raw->held_index % 2];
    slot.generation = held.version.generation.value;
    slot.commits = held.version.commits;
    slot.digest = held.digest;
    slot.step = held.step;
    slot.offset = offset;
    slot.bytes = bytes;
  }
}

void FuzzHost::CheckPromises() const {
  for (const std::string& broken : core_.BrokenInvariants()) {
    // The others say what the words of honest pages are.
    for (const std::string_view promise : {"A1 closed further", "A3", "A4 dead but not lost"}) {
      if (broken.compare(0, promise.size(), promise) == 0) {
        Broken(broken);
      }
    }
  }
}

}  // namespace elastic::internal
