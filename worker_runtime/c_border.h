#pragma once

#include <sys/types.h>
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "rendezvous/base/log.h"
#include "rendezvous/base/status.h"
#include "worker_runtime/elastic_c.h"
#include "worker_runtime/fork_mark.h"
#include "worker_runtime/session.h"

// The border between the C interface and the C++ inside, for the files with elastic_* functions:
// checks arguments, keeps the newest error of each thread, and owns the one session of this
// process.
namespace elastic::internal::border {

// The one object of a process: a C interface has no handle to hang it on, and a process has one
// rank. Never destroyed, so that nothing of ours runs at exit.
struct Process {
  std::unique_ptr<Session> session;
  std::string incarnation;
  std::vector<MemberView> members_text;  // what elastic_get_members has pointed into
  ForkMark mark;                         // of the process that called elastic_init
  pid_t pid = 0;
  bool inside_run = false;
};
extern Process& process;

// The newest of the calling thread.
const std::string& LastError();
elastic_status LastStatus();

// What a call answers with, kept for the two above.
elastic_status Remember(elastic_status status, std::string message);
elastic_status Remember(const Status& status);

// Errors: FAILED_PRECONDITION before elastic_init and in a forked child.
Status CheckInitialised();
// Errors: FAILED_PRECONDITION in a forked child of a process that uses the runtime.
Status CheckNotForked();

// Copies the members that the caller's version of the struct has; `bytes_min` is the size of the
// struct in its first version.
template <class Struct>
Status FillStruct(Struct* target, Struct filled, size_t bytes_min) {
  if (target == nullptr || target->struct_size < bytes_min) {
    return InvalidArgumentError(
        "the pointer is NULL or struct_size is not set: set it to sizeof the struct");
  }
  const size_t bytes = std::min(target->struct_size, sizeof(Struct));
  filled.struct_size = target->struct_size;
  std::memcpy(target, &filled, bytes);
  return OkStatus();
}

StatusOr<Session::Deadline> DeadlineOf(const elastic_call_options* options);

// The error of call `name`, which needs a membership: says which call makes one.
elastic_status NotAMember(const char* name);

// What every call that needs a membership checks first.
template <class Call>
elastic_status AsMember(const char* name, const elastic_call_options* options, Call call) {
  if (Status status = CheckInitialised(); !status.ok()) {
    return Remember(status);
  }
  if (!process.session->membership()) {
    return NotAMember(name);
  }
  auto deadline = DeadlineOf(options);
  if (!deadline.ok()) {
    return Remember(deadline.status());
  }
  return Remember(call(*deadline));
}

}  // namespace elastic::internal::border
