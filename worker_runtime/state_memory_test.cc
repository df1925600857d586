#include "worker_runtime/state_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>

#include "rendezvous/base/limits.h"

namespace elastic::internal {
namespace {

struct Memfd {
  Memfd() : fd(memfd_create("state-test", MFD_CLOEXEC)) { REQUIRE(fd >= 0); }
  ~Memfd() { close(fd); }
  const int fd;
};

TEST_CASE("Flip exchanges the committed and the spare buffer and copies nothing") {
  Memfd memfd;
  auto memory = StateMemory::Create(memfd.fd, 100);
  REQUIRE(memory.ok());
  StateMemory& state = **memory;
  std::memset(state.current().data(), 1, 100);
  std::memset(state.next().data(), 2, 100);
  const std::byte* const first = state.current().data();
  state.Flip();
  REQUIRE(state.current()[99] == std::byte{2});
  REQUIRE(state.next().data() == first);
  REQUIRE(state.next()[0] == std::byte{1});
}

TEST_CASE("What is committed is found in the memfd at the offset that was published") {
  Memfd memfd;
  auto memory = StateMemory::Create(memfd.fd, 5000);
  REQUIRE(memory.ok());
  for (int commit = 1; commit <= 3; ++commit) {
    StateMemory& state = **memory;
    std::memset(state.next().data(), commit, 5000);
    const size_t offset = state.next_offset();
    state.Flip();
    unsigned char copy[5000];
    REQUIRE(pread(memfd.fd, copy, sizeof copy, static_cast<off_t>(offset)) == sizeof copy);
    REQUIRE(copy[0] == commit);
    REQUIRE(copy[4999] == commit);
  }
}

TEST_CASE("Large buffers begin at huge page boundaries and are there before they are touched") {
  Memfd memfd;
  const size_t bytes = (size_t{4} << 20) + 1;
  auto memory = StateMemory::Create(memfd.fd, bytes);
  REQUIRE(memory.ok());
  REQUIRE((*memory)->next_offset() % (size_t{2} << 20) == 0);
  struct stat info {};
  REQUIRE(fstat(memfd.fd, &info) == 0);
  REQUIRE(static_cast<size_t>(info.st_blocks) * 512 >= 2 * bytes);
}

TEST_CASE("A state of no or too many bytes is refused") {
  Memfd memfd;
  REQUIRE(StateMemory::Create(memfd.fd, 0).status().code() == StatusCode::kInvalidArgument);
  REQUIRE(StateMemory::Create(memfd.fd, kStateBytesMax + 1).status().code() ==
          StatusCode::kInvalidArgument);
}

TEST_CASE("A program without state has two empty buffers") {
  const StateMemory none;
  REQUIRE(none.bytes() == 0);
  REQUIRE(none.current().empty());
  REQUIRE(none.next().empty());
}

}  // namespace
}  // namespace elastic::internal
