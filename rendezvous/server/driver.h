#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "rendezvous/core/membership.h"
#include "rendezvous/server/event_queue.h"
#include "rendezvous/store/journal.h"

namespace elastic::internal {

// The thread that owns Membership: takes events from a bounded queue, steps the core, and carries
// out its actions in the order given. It decides nothing: when an acknowledgement without news is
// due is the core's matter too.
class Driver {
 public:
  struct Callbacks {
    std::function<void(Severity, const std::string&)> note;
    std::function<void(int exit_code, const std::string& reason)> ended;
  };
  // `journal` must outlive the driver.
  Driver(JobSpec spec, ServerIncarnation incarnation, std::optional<JournalRecord> restored,
         Journal& journal, Callbacks callbacks);
  ~Driver();  // Stop()

  // From any thread. False when the queue is full or the driver has stopped.
  bool Post(Event event);
  // Gives the stream its number; its later events carry it. False as for Post.
  bool Open(ConnectionId connection, AgentConnected event, std::shared_ptr<AgentSink> sink);
  ConnectionId NextConnection();
  // Calls back with the newest picture, on the driver thread. False when the driver has stopped.
  bool RequestView(ViewRequest request);
  // Waits for it, kViewWait at most; an empty one when there is none.
  JobView View();
  // Closes all streams with UNAVAILABLE and joins the thread.
  void Stop();

 private:
  struct Peer {
    std::string host;
    std::shared_ptr<AgentSink> sink;
  };

  void Run();
  void Handle(EventQueue::Item item);
  void HandleEvent(const Event& event);
  void Step(const Event& event);
  void Apply(const Persist& action);
  void Apply(const AdmitAgent& action);
  void Apply(const RefuseAgent& action);
  void Apply(const Publish& action);
  void Apply(const Note& action);
  void Apply(const EndJob& action);
  std::optional<Instant> NextDeadline() const;
  void Halt(const Status& reason);
  void CloseAll(const Status& reason);

  const ServerIncarnation incarnation_;
  Journal& journal_;
  const Callbacks callbacks_;

  EventQueue queue_;
  std::atomic<uint64_t> connections_{0};

  // Of the driver thread only.
  Membership membership_;
  std::map<ConnectionId, Peer> peers_;
  std::map<std::string, ConnectionId> admitted_;  // by host
  Instant now_;
  bool halted_ = false;

  std::thread thread_;  // last: starts when all is made
};

}  // namespace elastic::internal
