#pragma once

#include <map>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/transport/context.h"
#include "launcher/agent/control_words.h"
#include "rendezvous/base/mutex.h"
#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

// Serves the committed state of workers that have died here, straight from their state memfds, so
// that a version survives the loss of all its workers on this host (P14). A thread of its own: a
// transfer takes as long as the state is large, and the agent must go on watching meanwhile.
class CopyServer final : public StateSource {
 public:
  struct Options {
    std::string listen_address;
    std::string job_id;
    uint64_t job_nonce = 0;
  };
  // Errors: those of Context::Create, when the address cannot be listened on.
  static StatusOr<std::unique_ptr<CopyServer>> Start(Options options);
  ~CopyServer() override;

  Endpoint endpoint() const { return context_->endpoint(); }

  // From the agent's thread. A worker's copy is known from its spawning on, can be fetched once it
  // is dead, and is forgotten when the server says so; a transfer under way still ends well. The
  // copy's memory is freed by the server's own thread, which for a large state takes seconds.
  void Register(WorkerIncarnation incarnation, int state_fd);
  // What the page says that the dead worker holds; replaces what an earlier call said.
  void Serve(WorkerIncarnation incarnation, const HeldPlace& place);
  void Forget(WorkerIncarnation incarnation);

  // StateSource, on the server's own thread.
  Answer Offer(const GenerationId& generation, WorkerIncarnation whose) override;
  void Done(const GenerationId& generation, WorkerIncarnation asker) override;

 private:
  class Mapping;
  struct Copy {
    UniqueFd state;
    std::optional<HeldPlace> place;  // once dead
    // Two owners: the table, and the transfers that outlive the entry.
    std::shared_ptr<Mapping> mapping;
  };

  CopyServer();
  void Run();
  void Wake();

  std::unique_ptr<Context> context_;  // the thread's, but for its constant endpoint
  // Every offered mapping, until all transfers that may use it have ended. Of the thread alone.
  std::multimap<GenerationId, std::shared_ptr<Mapping>> in_use_;
  std::map<GenerationId, std::ptrdiff_t> ended_;
  const UniqueFd wake_;

  Mutex mutex_;
  std::map<WorkerIncarnation, Copy> copies_ GUARDED_BY(mutex_);
  std::vector<Copy> forgotten_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace elastic::internal
