#include "rendezvous/server/driver.h"

#include <future>
#include <utility>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"
#include "rendezvous/base/sched_slice.h"

namespace elastic::internal {

namespace {

// How long View() waits for a driver that is in the middle of something.
constexpr Duration kViewWait = std::chrono::seconds(1);

}  // namespace

Driver::Driver(JobSpec spec, ServerIncarnation incarnation, std::optional<JournalRecord> restored,
               Journal& journal, Callbacks callbacks)
    : incarnation_(incarnation),
      journal_(journal),
      callbacks_(std::move(callbacks)),
      membership_(std::move(spec), incarnation, std::move(restored), Now()),
      now_(Now()),
      thread_([this] { Run(); }) {}

Driver::~Driver() { Stop(); }

bool Driver::Post(Event event) { return queue_.Push(std::move(event)); }

bool Driver::Open(ConnectionId connection, AgentConnected event, std::shared_ptr<AgentSink> sink) {
  event.connection = connection;
  return queue_.Push(StreamOpened{std::move(event), std::move(sink)});
}

ConnectionId Driver::NextConnection() { return {++connections_}; }

bool Driver::RequestView(ViewRequest request) { return queue_.Push(std::move(request)); }

JobView Driver::View() {
  // Shared with the request, which may be answered after this wait was given up.
  auto answer = std::make_shared<std::promise<JobView>>();
  std::future<JobView> view = answer->get_future();
  const bool asked = RequestView([answer](const JobView& newest) { answer->set_value(newest); });
  return asked && view.wait_for(kViewWait) == std::future_status::ready ? view.get() : JobView{};
}

void Driver::Stop() {
  queue_.Close();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Driver::Run() {
  if (const Status status = RequestShortSlice(SliceInheritance::kResetOnFork); !status.ok()) {
    LogDebug("driver thread keeps the default time slice: ", status.message());
  }
  while (true) {
    std::optional<EventQueue::Item> item = queue_.Pop(NextDeadline());
    now_ = Now();
    if (item.has_value()) {
      Handle(std::move(*item));
    } else if (queue_.closed()) {
      break;
    }
    const std::optional<Instant> deadline = NextDeadline();
    if (deadline.has_value() && *deadline <= now_) {
      Step(TimePassed{});
    }
  }
  CloseAll(UnavailableError("the rendezvous server is shutting down"));
}

void Driver::Handle(EventQueue::Item item) {
  if (const ViewRequest* request = std::get_if<ViewRequest>(&item)) {
    (*request)(membership_.View(now_));
  } else if (StreamOpened* opened = std::get_if<StreamOpened>(&item)) {
    if (halted_) {
      opened->sink->Close(UnavailableError("this rendezvous server has stopped"));
      return;
    }
    const ConnectionId connection = opened->event.connection;
    peers_[connection] = {.host = opened->event.host, .sink = std::move(opened->sink)};
    Step(std::move(opened->event));
  } else if (!halted_) {
    HandleEvent(std::get<Event>(item));
  }
}

void Driver::HandleEvent(const Event& event) {
  if (const AgentReported* reported = std::get_if<AgentReported>(&event)) {
    if (peers_.contains(reported->connection)) {
      Step(event);
    }
  } else if (const AgentDisconnected* gone = std::get_if<AgentDisconnected>(&event)) {
    // Streams that we closed ourselves are no news to the core.
    const auto peer = peers_.find(gone->connection);
    if (peer == peers_.end()) {
      return;
    }
    const auto host = admitted_.find(peer->second.host);
    if (host != admitted_.end() && host->second == gone->connection) {
      admitted_.erase(host);
    }
    peers_.erase(peer);
    Step(event);
  } else {
    Step(event);
  }
}

void Driver::Step(const Event& event) {
  for (const Action& action : membership_.Step(now_, event)) {
    std::visit([this](const auto& one) { Apply(one); }, action);
    if (halted_) {
      return;
    }
  }
}

void Driver::Apply(const Persist& action) {
  if (const Status written = journal_.Write(action.record); !written.ok()) {
    Halt(written);
  }
}

void Driver::Apply(const AdmitAgent& action) {
  const auto peer = peers_.find(action.connection);
  if (peer == peers_.end()) {
    return;
  }
  const auto before = admitted_.find(peer->second.host);
  if (before != admitted_.end() && before->second != action.connection) {
    // Of the same life; an older one's was refused by an action before this.
    const auto older = peers_.find(before->second);
    older->second.sink->Close(UnavailableError("the agent has opened a newer stream"));
    peers_.erase(older);
  }
  admitted_[peer->second.host] = action.connection;
  peer->second.sink->Welcome(incarnation_, action.agent);
}

void Driver::Apply(const RefuseAgent& action) {
  const auto peer = peers_.find(action.connection);
  if (peer == peers_.end()) {
    return;
  }
  peer->second.sink->Close(action.reason);
  const auto host = admitted_.find(peer->second.host);
  if (host != admitted_.end() && host->second == action.connection) {
    admitted_.erase(host);
  }
  peers_.erase(peer);
}

void Driver::Apply(const Publish& action) {
  const auto connection = admitted_.find(action.host);
  if (connection == admitted_.end()) {
    return;
  }
  std::optional<Directive> directive = membership_.DirectiveFor(action.host, now_);
  if (directive.has_value()) {
    peers_.at(connection->second).sink->Deliver(std::move(*directive));
  }
}

void Driver::Apply(const Note& action) {
  if (callbacks_.note) {
    callbacks_.note(action.severity, action.text);
  }
}

void Driver::Apply(const EndJob& action) {
  if (callbacks_.ended) {
    callbacks_.ended(action.exit_code, action.reason);
  }
}

std::optional<Instant> Driver::NextDeadline() const {
  return halted_ ? std::nullopt : membership_.NextDeadline();
}

void Driver::Halt(const Status& reason) {
  halted_ = true;
  Apply(Note{Severity::kError, "the journal refused a decision: " + reason.message()});
  CloseAll(UnavailableError("this rendezvous server has stopped: " + reason.message()));
  Apply(EndJob{static_cast<int>(JobExit::kStateLost),
               "the rendezvous server lost its journal: " + reason.message()});
}

void Driver::CloseAll(const Status& reason) {
  for (auto& [connection, peer] : peers_) {
    peer.sink->Close(reason);
  }
  peers_.clear();
  admitted_.clear();
}

}  // namespace elastic::internal
