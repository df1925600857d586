#include "worker_runtime/state_memory.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

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
  REQUIRE_FALSE(none.grows());
  REQUIRE(none.current().empty());
  REQUIRE(none.next().empty());
}

TEST_CASE("Areas that grow leave the committed one where it is, and take no more than they need") {
  Memfd memfd;
  auto memory = StateMemory::CreateGrowing(memfd.fd);
  REQUIRE(memory.ok());
  StateMemory& state = **memory;
  REQUIRE(state.current().empty());
  // Over a page, over a huge page, shrinking, growing again.
  const size_t sizes[] = {100, 5000, size_t{3} << 20, 200, size_t{5} << 20, size_t{5} << 20, 0, 64};
  int value = 0;
  for (const size_t bytes : sizes) {
    const std::span<std::byte> committed = state.current();
    REQUIRE(state.ResizeNext(bytes).ok());
    REQUIRE(state.next().size() == bytes);
    std::memset(state.next().data(), ++value, bytes);
    REQUIRE(state.current().data() == committed.data());
    REQUIRE(std::all_of(committed.begin(), committed.end(),
                        [&](std::byte b) { return b == static_cast<std::byte>(value - 1); }));
    const auto offset = static_cast<off_t>(state.next_offset());
    state.Flip();
    std::vector<std::byte> copy(bytes);
    REQUIRE(pread(memfd.fd, copy.data(), bytes, offset) == static_cast<ssize_t>(bytes));
    REQUIRE(std::ranges::equal(copy, state.current()));
  }
  struct stat info {};
  REQUIRE(fstat(memfd.fd, &info) == 0);
  REQUIRE(static_cast<size_t>(info.st_size) <= size_t{16} << 20);
}

TEST_CASE("Room that cannot be had leaves the committed copy and an empty next one") {
  Memfd memfd;
  auto memory = StateMemory::CreateGrowing(memfd.fd);
  REQUIRE(memory.ok());
  StateMemory& state = **memory;
  REQUIRE(state.ResizeNext(100).ok());
  std::memset(state.next().data(), 1, 100);
  state.Flip();
  REQUIRE(state.ResizeNext(kStateBytesMax + 1).code() == StatusCode::kInvalidArgument);
  REQUIRE(state.next().empty());
  REQUIRE(state.current()[99] == std::byte{1});
}

TEST_CASE("New memory is named once, to be there before it is touched") {
  Memfd memfd;
  auto memory = StateMemory::CreateGrowing(memfd.fd);
  REQUIRE(memory.ok());
  StateMemory& state = **memory;
  REQUIRE(state.ResizeNext(10000).ok());
  const std::span<std::byte> untouched = state.TakeNewMemory();
  REQUIRE(untouched.size() == 10000);
  REQUIRE(StateMemory::Prefault(untouched).ok());
  struct stat info {};
  REQUIRE(fstat(memfd.fd, &info) == 0);
  REQUIRE(static_cast<size_t>(info.st_blocks) * 512 >= 10000);
  REQUIRE(state.TakeNewMemory().empty());
  REQUIRE(state.ResizeNext(9000).ok());
  REQUIRE(state.TakeNewMemory().empty());
}

}  // namespace
}  // namespace elastic::internal
