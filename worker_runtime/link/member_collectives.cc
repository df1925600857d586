#include <utility>

#include "collectives/limits.h"
#include "rendezvous/base/log.h"
#include "worker_runtime/link/member.h"
#include "worker_runtime/link/member_errors.h"

// The program's collectives, and the communicators that it creates.

namespace elastic::internal {

StatusOr<std::shared_ptr<Communicator>> Member::BeginCollective(Where where, Phase phase) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CallStatus());
  const Wires* wires = WiresOf(call_->id);
  if (wires == nullptr) {
    return GenerationIsOver();
  }
  std::shared_ptr<Communicator> communicator = wires->main;
  if (where.communicator != 0) {
    const auto index = static_cast<size_t>(where.communicator) - 1;
    if (where.communicator < 0 || index >= wires->created.size() ||
        wires->created[index] == nullptr) {
      return InvalidArgumentError(StrCat("communicator ", where.communicator,
                                         " is none of generation ", ToString(call_->id.number),
                                         ", which has ", wires->created.size(),
                                         ": create communicators anew in each generation"));
    }
    communicator = wires->created[index];
  } else if (where.reach == Reach::kWorld) {
    Feed(worker_event::CollectiveWanted{call_->id});
    communicator->Contribute(contribution_);
  }
  SetProgramPhase(phase);
  return communicator;
}

// A broken connection is an accusation, not yet a loss: the server decides, and the generation that
// follows, with or without that peer, is entered by the next join (P18).
Status Member::EndCollective(Where where, const Communicator& communicator, const Status& status) {
  MutexLock lock(mutex_);
  SetProgramPhase(Phase::kOutside);
  if (status.ok() && where.reach == Reach::kWorld && where.communicator == 0) {
    FeedFromProgram(worker_event::Agreed{communicator.generation(), communicator.agreed()});
    return fatal_;
  }
  if (status.code() == StatusCode::kUnavailable) {
    call_over_ = true;
    RingLoop();
    if (const auto peer = communicator.broken_peer(); peer) {
      FeedFromProgram(worker_event::PeerBroken{communicator.generation(), *peer});
    }
    return AbortedError(StrCat(status.message(), "; waiting for the next generation"));
  }
  if (status.code() == StatusCode::kAborted) {
    return GenerationIsOver();
  }
  if (!communicator.failure().ok() && fatal_.ok()) {
    // Ranks that do not make the same calls, or a deadline in mid-message: no generation mends
    // that, and the peers wait for this one until its connections end.
    status.code() == StatusCode::kInvalidArgument ? GiveUpProgram(status) : GiveUp(status);
  }
  return status;
}

// ---- communicators ----------------------------------------

// They are made by R and by all ranks; a rank that is lost meanwhile ends the wait by its mark.
StatusOr<int> Member::CreateCommunicator(Deadline deadline) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CallStatus());
  const GenerationId generation = call_->id;
  if (WiresOf(generation) == nullptr) {
    return GenerationIsOver();
  }
  auto& created = wires_.at(generation.number).created;
  if (created.size() >= static_cast<size_t>(kCreatedCommunicatorsMax)) {
    return TooManyCommunicators();
  }
  const size_t index = created.size();
  created.emplace_back();
  wanted_.push_back({*call_, static_cast<Channel>(static_cast<size_t>(Channel::kCreated) + index)});
  WakeRuntime();
  while (true) {
    RETURN_IF_ERROR(CallStatus());
    if (call_->id != generation || WiresOf(generation) == nullptr) {
      return GenerationIsOver();
    }
    if (wires_.at(generation.number).created[index] != nullptr) {
      return static_cast<int>(index) + 1;
    }
    if (!WaitUntil(deadline)) {
      Status late = OutOfTime("waiting for all ranks to create the communicator");
      GiveUp(late);  // the ranks would number their communicators differently from now on
      return late;
    }
  }
}

std::deque<Member::Wanted> Member::TakeWanted() {
  MutexLock lock(mutex_);
  return std::exchange(wanted_, {});
}

void Member::CreatedMeshCame(const GenerationId& generation, Channel channel,
                             std::unique_ptr<Mesh> mesh) {
  auto communicator = std::make_shared<Communicator>(std::move(mesh), interrupt_);
  const size_t index = static_cast<size_t>(channel) - static_cast<size_t>(Channel::kCreated);
  MutexLock lock(mutex_);
  const auto wires = wires_.find(generation.number);
  if (wires == wires_.end() || wires->second.generation != generation ||
      index >= wires->second.created.size()) {
    return;
  }
  wires->second.created[index] = std::move(communicator);
  changed_.notify_all();
}

}  // namespace elastic::internal
