// RuntimeThread's work of the data plane: connections, and the state that is fetched.
#include <algorithm>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "rendezvous/base/real_clock.h"
#include "worker_runtime/link/runtime_thread.h"

namespace elastic::internal {

namespace {

// Before a holder that failed is asked again. Most failures are the first sign of a loss, and the
// rounds that the core allows must outlast the server's learning of it: a worker that gives up
// costs a process that could have gone on.
constexpr Duration kFetchPause = std::chrono::seconds(2);

}  // namespace

void RuntimeThread::DoLinkWork() {
  if (parts_.member.TransferMustStop()) {
    StopTransfer();
  }
  // Carrying out one piece may give the next: a mesh without edges is complete at once.
  for (auto work = parts_.member.TakeLinkWork(); !work.empty();
       work = parts_.member.TakeLinkWork()) {
    for (const WorkerAction& action : work) {
      Do(action);
    }
  }
  for (const Member::Wanted& wanted : parts_.member.TakeWanted()) {
    ConnectMore(wanted);
  }
  if (transfer_wanted_) {
    BeginTransfer();
  }
  if (parts_.member.TakeRetryRequests()) {
    parts_.context.RetryRequests();
  }
}

void RuntimeThread::Do(const WorkerAction& action) {
  if (const auto* connect = std::get_if<worker_action::Connect>(&action)) {
    Connect(connect->roster);
  } else if (const auto* retry = std::get_if<worker_action::RetryEdges>(&action)) {
    RetryEdges(*retry);
  } else if (const auto* disconnect = std::get_if<worker_action::Disconnect>(&action)) {
    std::erase_if(retries_, [&](const auto& due) { return due.first <= disconnect->up_to; });
    std::erase_if(warned_of_, [&](GenerationNumber number) { return number <= disconnect->up_to; });
    if (transfer_wanted_ && transfer_wanted_->number <= disconnect->up_to) {
      transfer_wanted_.reset();
    }
    if (postponed_ && postponed_->fetch.roster.id.number <= disconnect->up_to) {
      postponed_.reset();
    }
    parts_.context.Cancel(disconnect->up_to);
    if (asked_in_.number <= disconnect->up_to) {
      asking_.reset();
      parts_.member.TransferEnded();
    }
    parts_.member.Disconnect(disconnect->up_to);
  } else if (const auto* fetch = std::get_if<worker_action::Fetch>(&action)) {
    Ask(*fetch);
  } else if (const auto* accept = std::get_if<worker_action::AcceptState>(&action)) {
    transfer_wanted_ = accept->generation;
  } else if (std::holds_alternative<worker_action::RunReturns>(action)) {
    Leave();
  }
}

void RuntimeThread::Connect(const Roster& roster) {
  const GenerationId generation = roster.id;
  parts_.context.Connect(
      roster, Channel::kMain,
      [this, generation](tl::expected<std::unique_ptr<Mesh>, Context::Failure> mesh) {
        if (mesh) {
          parts_.member.MeshCame(generation, std::move(*mesh));
          return;
        }
        EdgesFailed(generation, mesh.error());
      });
}

// All ranks are inside that generation. An edge that fails is tried again until it stands or the
// generation is over: a peer that is lost is found by its connections that are in use.
void RuntimeThread::ConnectMore(const Member::Wanted& wanted) {
  const GenerationId generation = wanted.roster.id;
  parts_.context.Connect(wanted.roster, wanted.channel,
                         [this, generation, channel = wanted.channel](
                             tl::expected<std::unique_ptr<Mesh>, Context::Failure> mesh) {
                           if (mesh) {
                             parts_.member.CreatedMeshCame(generation, channel, std::move(*mesh));
                             return;
                           }
                           LogDebug(mesh.error().status.message());
                           retries_.try_emplace(generation.number, Now() + kEdgeRetryDelayFirst);
                         });
}

void RuntimeThread::EdgesFailed(const GenerationId& generation, const Context::Failure& failure) {
  if (!retries_.try_emplace(generation.number).second) {
    return;
  }
  if (warned_of_.insert(generation.number).second) {
    LogWarning(failure.status.message(), "; it is tried again (told once per generation)");
  } else {
    LogDebug(failure.status.message());
  }
  parts_.member.EdgesFailed(generation, failure);
}

void RuntimeThread::RetryEdges(const worker_action::RetryEdges& retry) {
  if (retry.after > Duration::zero()) {
    retries_[retry.generation.number] = Now() + retry.after;
    return;
  }
  retries_.erase(retry.generation.number);
  parts_.context.RetryEdges(retry.generation.number);
}

void RuntimeThread::Ask(const worker_action::Fetch& fetch) {
  transfer_wanted_.reset();
  postponed_.reset();
  parts_.context.StopFetch();
  parts_.member.TransferEnded();
  const auto refused = std::exchange(asking_, std::nullopt);
  if (asked_in_ != fetch.roster.id) {
    asked_in_ = fetch.roster.id;
    failed_holders_.clear();
  } else if (refused) {
    failed_holders_.insert(*refused);  // the core wants nothing of it
  }
  if (failed_holders_.contains(fetch.holder.incarnation)) {
    postponed_ = Postponed{.fetch = fetch, .until = Now() + kFetchPause};
    return;
  }
  Fetch(fetch);
}

void RuntimeThread::Fetch(const worker_action::Fetch& fetch) {
  asking_ = fetch.holder.incarnation;
  parts_.context.Fetch(
      fetch.roster, fetch.holder,
      [this, generation = fetch.roster.id](const Context::Offer& offer) {
        parts_.member.StateOffered(generation, offer);
      },
      [this, fetch](const StatusOr<Held>& held) { FetchEnded(fetch, held); });
}

void RuntimeThread::FetchEnded(const worker_action::Fetch& fetch, const StatusOr<Held>& held) {
  asking_.reset();
  if (held.ok()) {
    parts_.member.StateCame(fetch.roster.id, *held);
    return;
  }
  parts_.member.TransferEnded();
  LogWarning("no state from ", ToString(fetch.holder.incarnation), ": ", held.status().ToString());
  if (held.status().code() == StatusCode::kAborted) {
    return;  // the generation is over there: the fence, or another roster, is on its way here
  }
  failed_holders_.insert(fetch.holder.incarnation);
  parts_.member.FetchFailed(fetch.roster.id, fetch.holder.incarnation);
}

void RuntimeThread::BeginTransfer() {
  if (const auto room = parts_.member.RoomForState(); room) {
    transfer_wanted_.reset();
    parts_.context.AcceptOffer(*room);
  }
}

// The core has the same holder asked again; its offer is accepted when the program is back.
void RuntimeThread::StopTransfer() {
  parts_.context.StopFetch();
  asking_.reset();
  parts_.member.TransferStopped(asked_in_);
}

// Unlock first, so that the futex tells of a death only when there was one (P13). The end of the
// program's use of the runtime is none, whether the job is done or not: the agent, which knows,
// counts a worker that gives up in mid-training as lost, and leaves it the time to exit by itself.
void RuntimeThread::Leave() {
  if (left_) {
    return;
  }
  left_ = true;
  parts_.page.ReleaseOwner();
  parts_.member.SendLeaving();
}

}  // namespace elastic::internal
