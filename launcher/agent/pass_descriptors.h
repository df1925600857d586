#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "rendezvous/base/unique_fd.h"

namespace elastic::internal {

inline constexpr size_t kPassedDescriptorsMax = 8;

// One message of a SOCK_SEQPACKET socket with descriptors (SCM_RIGHTS). Neither waits. Both return
// what sendmsg and recvmsg do, with errno; a message that was cut gives -1 with EMSGSIZE, one whose
// descriptors this process has no room for -1 with EMFILE (ulimit -n).
ssize_t SendWithDescriptors(int socket, const void* data, size_t bytes,
                            std::span<const int> descriptors);
// Descriptors beyond `descriptors` are closed.
ssize_t ReceiveWithDescriptors(int socket, void* data, size_t bytes,
                               std::span<UniqueFd> descriptors);

}  // namespace elastic::internal
