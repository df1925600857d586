#include <cstring>
#include <string>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"
#include "worker_runtime/c_border.h"

// The calls for a program's own loop, and for one that brings its own communication.

namespace {

using elastic::internal::InvalidArgumentError;
using elastic::internal::LoopEvent;
using elastic::internal::MemberView;
using elastic::internal::OkStatus;
using elastic::internal::Session;
using elastic::internal::Standing;
using elastic::internal::Status;
using elastic::internal::StatusOr;
using elastic::internal::StrCat;
using elastic::internal::border::AsMember;
using elastic::internal::border::CheckInitialised;
using elastic::internal::border::process;
using elastic::internal::border::Remember;

Status CheckKey(const char* name, const char* key) {
  const size_t bytes = key == nullptr ? 0 : strnlen(key, elastic::internal::kStoreKeyBytesMax + 1);
  if (bytes == 0 || bytes > elastic::internal::kStoreKeyBytesMax) {
    return InvalidArgumentError(StrCat(name, ": the key has ",
                                       bytes == 0 ? "no characters" : "too many characters",
                                       "; need 1 to ", elastic::internal::kStoreKeyBytesMax));
  }
  return OkStatus();
}

elastic_event EventOf(LoopEvent event) {
  switch (event) {
    case LoopEvent::kContinue: return ELASTIC_CONTINUE;
    case LoopEvent::kReformed: return ELASTIC_REFORMED;
    case LoopEvent::kRestore: return ELASTIC_RESTORE;
    case LoopEvent::kCommitWanted: return ELASTIC_COMMIT_WANTED;
    case LoopEvent::kStopAt: return ELASTIC_STOP_AT;
  }
  return ELASTIC_CONTINUE;
}

elastic_member MemberOf(const MemberView& view) {
  return {.struct_size = sizeof(elastic_member),
          .rank = view.rank,
          .previous_rank = view.previous_rank,
          .slot = view.slot,
          .port = view.data.port,
          .host = view.host.c_str(),
          .address = view.data.address.c_str(),
          .incarnation = view.incarnation.c_str()};
}

}  // namespace

extern "C" {

elastic_standing elastic_get_standing(void) {
  if (Remember(CheckInitialised()) != ELASTIC_OK) {
    return ELASTIC_STANDING_NONE;
  }
  switch (process.session->standing()) {
    case Standing::kStarting: return ELASTIC_STANDING_STARTING;
    case Standing::kWaiting: return ELASTIC_STANDING_WAITING;
    case Standing::kMember: return ELASTIC_STANDING_MEMBER;
    case Standing::kFinished: return ELASTIC_STANDING_FINISHED;
  }
  return ELASTIC_STANDING_NONE;
}

elastic_status elastic_poll(elastic_event* event) {
  return AsMember("elastic_poll", nullptr, [&](Session::Deadline) -> Status {
    if (event == nullptr) {
      return InvalidArgumentError("elastic_poll: the pointer for the event is NULL");
    }
    const StatusOr<LoopEvent> found = process.session->Poll();
    if (found.ok()) {
      *event = EventOf(*found);
    }
    return found.status();
  });
}

int elastic_event_fd(void) {
  if (Remember(CheckInitialised()) != ELASTIC_OK) {
    return -1;
  }
  const StatusOr<int> fd = process.session->EventFd();
  return Remember(fd.status()) == ELASTIC_OK ? *fd : -1;
}

elastic_status elastic_get_members(elastic_member* members, size_t capacity, size_t* count) {
  return AsMember("elastic_get_members", nullptr, [&](Session::Deadline) -> Status {
    if (count == nullptr || (members == nullptr && capacity > 0)) {
      return InvalidArgumentError("elastic_get_members: NULL for the array or for the count");
    }
    const size_t stride = capacity > 0 ? members->struct_size : sizeof(elastic_member);
    if (stride < sizeof(elastic_member)) {
      return InvalidArgumentError(
          StrCat("elastic_get_members: struct_size of the first element is ", stride,
                 ": set it to sizeof(elastic_member)"));
    }
    std::vector<MemberView> views = process.session->members();
    *count = views.size();
    if (capacity == 0) {
      return OkStatus();
    }
    if (capacity < views.size()) {
      return InvalidArgumentError(StrCat("elastic_get_members: room for ", capacity,
                                         " members, this generation has ", views.size()));
    }
    // The text that was given out before stays until now.
    auto& text = process.members_text;
    text = std::move(views);
    auto* at = reinterpret_cast<std::byte*>(members);
    for (const MemberView& view : text) {
      elastic_member member = MemberOf(view);
      member.struct_size = stride;
      std::memcpy(at, &member, sizeof member);
      at += stride;
    }
    return OkStatus();
  });
}

elastic_status elastic_put(const char* key, const void* value, size_t bytes,
                           const elastic_call_options* options) {
  return AsMember("elastic_put", options, [&](Session::Deadline deadline) -> Status {
    RETURN_IF_ERROR(CheckKey("elastic_put", key));
    if (bytes > elastic::internal::kStoreValueBytesMax || (value == nullptr && bytes > 0)) {
      return InvalidArgumentError(
          StrCat("elastic_put: ", value == nullptr ? "NULL for a value" : "a value", " of ", bytes,
                 " bytes; at most ", elastic::internal::kStoreValueBytesMax,
                 " are possible, larger things go through a collective"));
    }
    return process.session->Put(key, std::string(static_cast<const char*>(value), bytes), deadline);
  });
}

elastic_status elastic_get(const char* key, void* value, size_t* bytes,
                           const elastic_call_options* options) {
  return AsMember("elastic_get", options, [&](Session::Deadline deadline) -> Status {
    RETURN_IF_ERROR(CheckKey("elastic_get", key));
    if (bytes == nullptr || (value == nullptr && *bytes > 0)) {
      return InvalidArgumentError("elastic_get: NULL for the buffer or for its size");
    }
    const size_t room = *bytes;
    ASSIGN_OR_RETURN(const std::string found, process.session->Get(key, deadline));
    *bytes = found.size();
    if (found.size() > room) {
      return InvalidArgumentError(StrCat("elastic_get: the value of key '", key, "' has ",
                                         found.size(), " bytes, the buffer ", room));
    }
    if (!found.empty()) {
      std::memcpy(value, found.data(), found.size());
    }
    return OkStatus();
  });
}

}  // extern "C"
