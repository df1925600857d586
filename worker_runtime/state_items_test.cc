#include "worker_runtime/state_items.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "rendezvous/base/limits.h"
#include "worker_runtime/state_memory.h"

namespace elastic::internal {
namespace {

bool Never() { return false; }

// The items of a program and its committed copies, as a session keeps them.
struct Program {
  Program() : fd(memfd_create("state-items-test", MFD_CLOEXEC)) {
    REQUIRE(fd.valid());
    memory = std::move(*StateMemory::CreateGrowing(fd.get()));
  }
  Status Register(const std::string& name, std::vector<int>& values,
                  std::function<void*(size_t)> resize = {}) {
    return items.Register({.name = name,
                           .memory = reinterpret_cast<std::byte*>(values.data()),
                           .bytes = values.size() * sizeof(int),
                           .resize = std::move(resize)});
  }
  // As `Register`, with a vector that takes the size that is restored.
  Status RegisterGrowing(const std::string& name, std::vector<int>& values) {
    return Register(name, values, [this, name, &values](size_t bytes) -> void* {
      resized.push_back(name + " " + std::to_string(bytes));
      values.resize(bytes / sizeof(int));
      return values.data();
    });
  }
  // The digest of what was copied.
  uint64_t Commit() {
    REQUIRE(memory->ResizeNext(*items.ImageBytes()).ok());
    const auto digest = items.Pack(memory->next(), Never);
    items.Committed();
    memory->Flip();
    return digest.value();
  }
  Status Restore() { return items.Restore(memory->current()); }

  UniqueFd fd;
  std::unique_ptr<StateMemory> memory;
  StateItems items;
  std::vector<std::string> resized;
};

TEST_CASE("A restore puts the committed bytes back where the program has its items") {
  Program program;
  std::vector<int> weights{1, 2, 3};
  std::vector<int> bias{4};
  REQUIRE(program.Register("weights", weights).ok());
  REQUIRE(program.Register("bias", bias).ok());
  const uint64_t digest = program.Commit();
  const std::span<const std::byte> image = program.memory->current();
  REQUIRE(digest == HashBytes(image.data(), image.size()));
  for (int loss = 0; loss < 2; ++loss) {  // the copy is whole after a restore, too
    weights = {9, 9, 9};
    bias = {9};
    REQUIRE(program.Restore().ok());
    REQUIRE(weights == std::vector<int>{1, 2, 3});
    REQUIRE(bias == std::vector<int>{4});
  }
}

TEST_CASE("Equal items give equal digests in whatever order they were registered") {
  std::vector<int> weights{1, 2, 3};
  std::vector<int> bias{4};
  Program one;
  REQUIRE(one.Register("weights", weights).ok());
  REQUIRE(one.Register("bias", bias).ok());
  Program other;
  REQUIRE(other.Register("bias", bias).ok());
  REQUIRE(other.Register("weights", weights).ok());
  const uint64_t digest = one.Commit();
  REQUIRE(other.Commit() == digest);
  bias[0] = 5;
  REQUIRE(other.Commit() != digest);
}

TEST_CASE("Wrong registrations are refused and leave the items as they are") {
  Program program;
  std::vector<int> values{1};
  REQUIRE(program.Register("", values).code() == StatusCode::kInvalidArgument);
  const std::string longest(kStateItemNameBytesMax, 'n');
  REQUIRE(program.Register(longest + "n", values).code() == StatusCode::kInvalidArgument);
  REQUIRE(program.Register(longest, values).ok());
  REQUIRE(program.Register(longest, values).code() == StatusCode::kFailedPrecondition);
  REQUIRE(program.items.Register({.name = "null", .memory = nullptr, .bytes = 1, .resize = {}})
              .code() == StatusCode::kInvalidArgument);
  REQUIRE(program.items.Resize(longest, nullptr, 4).code() == StatusCode::kInvalidArgument);
  REQUIRE(program.items.Resize("other", values.data(), 4).code() == StatusCode::kInvalidArgument);
  REQUIRE(program.items.Unregister("other").code() == StatusCode::kInvalidArgument);
  REQUIRE(program.items.Find("other") == nullptr);
  program.Commit();
  values[0] = 2;
  REQUIRE(program.Restore().ok());
  REQUIRE(values[0] == 1);
}

TEST_CASE("More items than the limit, or more bytes, are refused") {
  StateItems items;
  for (size_t i = 0; i < kStateItemsMax; ++i) {
    REQUIRE(items.Register({.name = std::to_string(i), .memory = nullptr, .bytes = 0, .resize = {}})
                .ok());
  }
  REQUIRE(items.Register({.name = "more", .memory = nullptr, .bytes = 0, .resize = {}}).code() ==
          StatusCode::kResourceExhausted);
  std::byte byte{};
  REQUIRE(items.Resize("0", &byte, kStateBytesMax).ok());
  REQUIRE(items.ImageBytes().status().code() == StatusCode::kResourceExhausted);
}

TEST_CASE("What was resized, registered and unregistered since the commit is taken back") {
  Program program;
  std::vector<int> before{1, 2};
  std::vector<int> gone{3};
  REQUIRE(program.Register("resized", before).ok());
  REQUIRE(program.Register("gone", gone).ok());
  program.Commit();
  std::vector<int> after{7, 8, 9};
  std::vector<int> added{6};
  REQUIRE(program.items.Resize("resized", after.data(), after.size() * sizeof(int)).ok());
  REQUIRE(program.items.Unregister("gone").ok());
  REQUIRE(program.Register("added", added).ok());
  before = {0, 0};
  gone = {0};
  REQUIRE(program.Restore().ok());
  REQUIRE(before == std::vector<int>{1, 2});
  REQUIRE(gone == std::vector<int>{3});
  REQUIRE(after == std::vector<int>{7, 8, 9});
  REQUIRE(static_cast<void*>(program.items.Find("resized")->memory) == before.data());
  REQUIRE(program.items.Find("gone") != nullptr);
  REQUIRE(program.items.Find("added") == nullptr);
}

TEST_CASE("What was resized and committed stays so") {
  Program program;
  std::vector<int> small{1, 2};
  std::vector<int> large(1000, 5);
  REQUIRE(program.Register("item", small).ok());
  program.Commit();
  REQUIRE(program.items.Resize("item", large.data(), large.size() * sizeof(int)).ok());
  program.Commit();
  std::fill(large.begin(), large.end(), 0);
  small = {0, 0};
  REQUIRE(program.Restore().ok());
  REQUIRE(large == std::vector<int>(1000, 5));
  REQUIRE(small == std::vector<int>{0, 0});
}

TEST_CASE("An item of another size than the committed one asks its resize function for memory") {
  Program job;
  std::vector<int> grown{1, 2, 3, 4};
  REQUIRE(job.Register("grown", grown).ok());
  job.Commit();
  Program newcomer;
  std::vector<int> mine;
  std::vector<int> unknown{5};
  REQUIRE(newcomer.RegisterGrowing("grown", mine).ok());
  REQUIRE(newcomer.RegisterGrowing("unknown", unknown).ok());
  REQUIRE(newcomer.items.Restore(job.memory->current()).ok());
  REQUIRE(mine == grown);
  REQUIRE(newcomer.resized == std::vector<std::string>{"grown 16", "unknown 0"});
  REQUIRE(newcomer.items.Find("unknown") == nullptr);
  REQUIRE(newcomer.Commit() == job.Commit());
}

TEST_CASE("Items that do not fit the job's state are named, and nothing is copied") {
  Program job;
  std::vector<int> pair{1, 2};
  REQUIRE(job.Register("a", pair).ok());
  REQUIRE(job.Register("b", pair).ok());
  job.Commit();
  std::vector<int> a{7, 7};
  std::vector<int> b{7, 7, 7};
  const auto refused = [&](Program& program, StatusCode code, const char* text) {
    const Status status = program.items.Restore(job.memory->current());
    REQUIRE(status.code() == code);
    REQUIRE_THAT(status.message(), Catch::Contains(text));
    REQUIRE(a == std::vector<int>{7, 7});
  };
  SECTION("missing") {
    Program program;
    REQUIRE(program.Register("a", a).ok());
    refused(program, StatusCode::kInvalidArgument, "has not registered");
  }
  SECTION("of another size") {
    Program program;
    REQUIRE(program.Register("a", a).ok());
    REQUIRE(program.Register("b", b).ok());
    refused(program, StatusCode::kInvalidArgument, "has 8 bytes in the job's state, but 12");
  }
  SECTION("unknown to the job") {
    Program program;
    REQUIRE(program.Register("a", a).ok());
    REQUIRE(program.Register("b", a).ok());
    REQUIRE(program.Register("c", b).ok());
    refused(program, StatusCode::kInvalidArgument, "which the job's state does not have");
  }
  SECTION("without memory") {
    Program program;
    REQUIRE(program.Register("a", a).ok());
    REQUIRE(program.Register("b", b, [](size_t) -> void* { return nullptr; }).ok());
    refused(program, StatusCode::kResourceExhausted, "gave no memory for 8 bytes");
  }
  SECTION("in two buffers") {
    Program program;
    REQUIRE(program.Register("a", a).ok());
    const std::vector<std::byte> buffer(100, std::byte{3});
    REQUIRE(program.items.Restore(buffer).code() == StatusCode::kInvalidArgument);
  }
}

// ---- a process that is killed while it copies ----------------------------------------

constexpr size_t kMoments = 9;  // before each MiB of the second copy, and after the last one
constexpr size_t kValues = 7u << 18;

struct Published {
  size_t offset;
  size_t bytes;
  uint64_t digest;
};

// Commits once, changes everything, and is killed at that moment of the next copy.
[[noreturn]] void CommitAndDie(int fd, size_t moment, Published* page) {
  std::vector<int> large(kValues, 1);
  std::vector<int> small{2};
  StateItems items;
  auto memory = std::move(*StateMemory::CreateGrowing(fd));
  const auto add = [&](const char* name, std::vector<int>& values) {
    (void)items.Register({.name = name,
                          .memory = reinterpret_cast<std::byte*>(values.data()),
                          .bytes = values.size() * sizeof(int),
                          .resize = {}});
  };
  add("large", large);
  add("small", small);
  size_t asked = 0;
  size_t last = SIZE_MAX;
  const EndEarly die = [&] {
    if (asked++ == last) {
      raise(SIGKILL);
    }
    return false;
  };
  for (int commit = 0; commit < 2; ++commit) {
    last = commit == 1 ? moment : SIZE_MAX;
    asked = 0;
    if (!memory->ResizeNext(*items.ImageBytes()).ok()) {
      _exit(1);
    }
    const uint64_t digest = *items.Pack(memory->next(), die);
    if (commit == 1) {
      raise(SIGKILL);  // copied whole, not yet committed
    }
    *page = {.offset = memory->next_offset(), .bytes = memory->next().size(), .digest = digest};
    items.Committed();
    memory->Flip();
    large.assign(moment % 2 == 0 ? kValues : kValues + 4096, 3);
    small = {4};
    (void)items.Resize("large", large.data(), large.size() * sizeof(int));
  }
  _exit(2);
}

TEST_CASE("The committed copy is whole whenever the process is killed during the next one") {
  auto* page = static_cast<Published*>(
      mmap(nullptr, sizeof(Published), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (size_t moment = 0; moment <= kMoments; ++moment) {
    const UniqueFd fd(memfd_create("state-items-test", MFD_CLOEXEC));
    const pid_t child = fork();
    if (child == 0) {
      CommitAndDie(fd.get(), moment, page);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    REQUIRE(WTERMSIG(status) == SIGKILL);
    std::vector<std::byte> image(page->bytes);
    REQUIRE(pread(fd.get(), image.data(), image.size(), static_cast<off_t>(page->offset)) ==
            static_cast<ssize_t>(image.size()));
    REQUIRE(HashBytes(image.data(), image.size()) == page->digest);
    Program successor;
    std::vector<int> large(kValues);
    std::vector<int> small(1);
    REQUIRE(successor.Register("large", large).ok());
    REQUIRE(successor.Register("small", small).ok());
    REQUIRE(successor.items.Restore(image).ok());
    REQUIRE(large == std::vector<int>(kValues, 1));
    REQUIRE(small == std::vector<int>{2});
  }
  munmap(page, sizeof(Published));
}

}  // namespace
}  // namespace elastic::internal
