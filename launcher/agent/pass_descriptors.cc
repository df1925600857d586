#include "launcher/agent/pass_descriptors.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "rendezvous/base/check.h"

namespace elastic::internal {

namespace {
union ControlBuffer {
  cmsghdr align;
  char bytes[CMSG_SPACE(kPassedDescriptorsMax * sizeof(int))];
};
}  // namespace

ssize_t SendWithDescriptors(int socket, const void* data, size_t bytes,
                            std::span<const int> descriptors) {
  ELASTIC_CHECK(descriptors.size() <= kPassedDescriptorsMax);
  iovec part{const_cast<void*>(data), bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

ssize_t ReceiveWithDescriptors(int socket, void* data, size_t bytes,
                               std::span<UniqueFd> descriptors) {
  iovec part{data, bytes};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  ControlBuffer control{};
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t received = 0;
  do {
    received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) {
    return received;
  }
  size_t taken = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      UniqueFd owned(fd);
      if (taken < descriptors.size()) {
        descriptors[taken++] = std::move(owned);
      }
    }
  }
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    // The kernel drops descriptors for which this process has no number left.
    errno = (message.msg_flags & MSG_CTRUNC) != 0 ? EMFILE : EMSGSIZE;
    return -1;
  }
  return received;
}

}  // namespace elastic::internal
