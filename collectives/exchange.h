#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "collectives/message.h"
#include "collectives/reduce.h"
#include "collectives/schedule/plan.h"
#include "collectives/transport/mesh.h"
#include "rendezvous/base/mutex.h"

namespace elastic::internal {

// Carries out plans over a mesh's sockets, one at a time, in the caller's thread.
//
// Everything is non-blocking; the only wait is on one epoll set of all edges, the interrupt and the
// own abort, all edge-triggered and registered once: no system call per operation changes what is
// watched, and a bell that stays readable (it does until the runtime has entered the next
// generation) wakes the wait once instead of making it spin. The truth is reread before every wait.
//
// End of stream on an edge counts only when bytes of it are still missing: a rank that has finished
// its part may close while slower ones still work.
class Exchange {
 public:
  Exchange(const Mesh& mesh, const Interrupt& interrupt);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // What a plan works on. `kernel` may be null if no piece reduces, `finish` if nothing divides.
  struct Work {
    MessageHeader header;
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    size_t element_bytes = 1;
    ReduceKernel kernel = nullptr;
    FinishKernel finish = nullptr;
  };

  Plan& plan() { return plan_; }
  std::byte* scratch() { return scratch_.get(); }

  // OK, or why no operation may begin (any more).
  Status Usable();
  // Takes up plan(); sends what may leave at once, never blocks. `own` is what this rank
  // contributes to the agreement of a world collective.
  void Begin(const Work& work, const Agreement& own);
  // Works and waits until the plan is done.
  Status Complete(std::optional<Instant> deadline);
  // The merge over all ranks, once a plan with slots is done.
  const Agreement& agreed() const { return slots_[static_cast<size_t>(plan_.result)]; }

  // From any thread.
  void Abort();
  const Status& failure() const { return failed_; }  // between operations, their thread only
  std::optional<WorkerIncarnation> broken_peer() const;

 private:
  struct Edge {
    int socket = -1;
    bool readable = true;  // edge-triggered: true until the socket said EAGAIN
    bool writable = true;
    bool ended = false;  // the peer sends no more, so it reads no more: nobody here half-closes
  };
  struct Sending {
    size_t header_sent = 0;
    size_t piece = 0;
    size_t piece_sent = 0;
    bool done = false;
  };
  struct Receiving {
    MessageHeaderBytes header{};
    size_t header_got = 0;
    size_t piece = 0;
    size_t piece_got = 0;  // stored or reduced
    size_t staged = 0;     // received for a reduction, not reduced yet
    size_t consumed = 0;   // of the whole stream's data
    size_t merged = 0;     // agreements, the one in the header included
    std::array<std::byte, kAgreementBytes> agreement{};  // one that is coming
    bool done = false;
  };
  template <class T>
  struct Span {
    T* data = nullptr;
    size_t bytes = 0;
  };

  std::optional<Status> Interrupted() const;
  bool Progress();
  bool Send(size_t index);
  bool Receive(size_t index);
  bool MaySend(const Outbound& stream) const;
  bool MayReceive(const Inbound& stream) const;
  const MessageHeaderBytes& HeaderOf(const Outbound& stream);
  Span<const std::byte> ReadyToSend(size_t index) const;
  Span<std::byte> RoomToReceive(size_t index);
  std::byte* Stage(size_t index) const;
  size_t StageBytes() const;
  void Took(size_t index, size_t bytes);
  void ReduceStaged(size_t index, const ReceivePiece& piece);
  void MergeCame(size_t index, const ReceivePiece& piece, size_t bytes);
  void SkipSent(size_t index);
  void SkipReceived(size_t index);
  void HeaderCame(size_t index);
  void CallsDiffer(size_t index);
  void PeerBroke(int rank, const std::string& how);
  bool Done() const;
  void Wait(std::optional<Instant> deadline);
  void Watch(int fd, uint64_t tag, uint32_t events);

  const Mesh& mesh_;
  const Interrupt& interrupt_;
  const UniqueFd epoll_;
  const UniqueFd abort_event_;
  ScratchPool::Block scratch_;

  std::atomic<bool> aborted_ = false;

  Plan plan_;
  Work work_;
  MessageHeaderBytes header_{};
  Agreement own_;
  std::vector<Agreement> slots_;
  std::vector<Edge> edges_;
  std::vector<Sending> sending_;
  std::vector<Receiving> receiving_;
  Status failed_;  // sticky: a stream that broke off in mid-message is of no use

  mutable Mutex mutex_;
  std::optional<WorkerIncarnation> broken_peer_ GUARDED_BY(mutex_);
};

}  // namespace elastic::internal
