#include "launcher/cli/ctl_names.h"

#include <algorithm>

namespace elastic::internal {

std::string_view NameOf(JobState state) {
  switch (state) {
    case JobState::kStarting: return "starting";
    case JobState::kRunning: return "running";
    case JobState::kEntering: return "entering";
    case JobState::kReforming: return "reforming";
    case JobState::kFinishing: return "finishing";
    case JobState::kFinished: return "finished";
    case JobState::kFailed: return "failed";
  }
  return "unknown";
}

std::string_view NameOf(WaitReason reason) {
  switch (reason) {
    case WaitReason::kNone: return "none";
    case WaitReason::kAgents: return "agents";
    case WaitReason::kWorkersReady: return "workers_ready";
    case WaitReason::kMinNp: return "min_np";
    case WaitReason::kFenceAnswers: return "fence_answers";
    case WaitReason::kCommitting: return "committing";
    case WaitReason::kPreparedMayBeEntered: return "prepared_may_be_entered";
    case WaitReason::kAllMembersSilent: return "all_members_silent";
    case WaitReason::kResumeVersion: return "resume_version";
    case WaitReason::kEntry: return "entry";
    case WaitReason::kFinishReports: return "finish_reports";
    case WaitReason::kMemory: return "memory";
  }
  return "unknown";
}

std::string_view NameOf(Phase phase) {
  switch (phase) {
    case Phase::kUnspecified: return "unspecified";
    case Phase::kOutside: return "outside";
    case Phase::kInCollective: return "in_collective";
    case Phase::kCommitting: return "committing";
    case Phase::kEntering: return "entering";
    case Phase::kRestoring: return "restoring";
    case Phase::kStarting: return "starting";
    case Phase::kWaiting: return "waiting";
    case Phase::kFinished: return "finished";
  }
  return "unknown";
}

std::string_view NameOf(WorkerLife life) {
  switch (life) {
    case WorkerLife::kUnspecified: return "unspecified";
    case WorkerLife::kStarting: return "starting";
    case WorkerLife::kWaiting: return "waiting";
    case WorkerLife::kMember: return "member";
    case WorkerLife::kDead: return "dead";
  }
  return "unknown";
}

std::string_view NameOf(DeathCause cause) {
  switch (cause) {
    case DeathCause::kUnspecified: return "unspecified";
    case DeathCause::kExited: return "exited";
    case DeathCause::kOwnerDied: return "owner_died";
    case DeathCause::kStopped: return "stopped";
    case DeathCause::kMarkedByServer: return "marked_by_server";
    case DeathCause::kNeverJoined: return "never_joined";
    case DeathCause::kOfferedAgain: return "offered_again";
  }
  return "unknown";
}

Duration BeatAge(const JobView& view, const WorkerView& worker) {
  const auto host = std::ranges::find(view.hosts, worker.host, &HostView::name);
  const Duration report_age = host == view.hosts.end() ? Duration(0) : host->heartbeat_age;
  return worker.report.beat_age + report_age;
}

}  // namespace elastic::internal
