// A worker for the agent's tests that speaks proto/local by itself: what it does is told by its
// argument, what it hears it prints. Not libelastic: that one behaves.
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "launcher/agent/pass_descriptors.h"
#include "proto/local/control_page.h"
#include "proto/local/roster_codec.h"
#include "rendezvous/base/commit_word.h"
#include "rendezvous/base/hash.h"
#include "rendezvous/base/limits.h"

namespace elastic::internal {
namespace {

using local::FrameKind;

constexpr char kState[] = "the committed state";

struct Worker {
  int socket = -1;
  int bell = -1;
  local::ControlPage* page = nullptr;
  void* state = nullptr;
  pthread_t thread{};  // holds the owner mutex
  std::atomic<bool> locked{false};
  std::atomic<bool> gives_up{false};
};
Worker self;

void Say(const std::string& text) {
  std::puts(text.c_str());
  std::fflush(stdout);
}

void Send(const local::Frame& frame) {
  send(self.socket, frame.data(), frame.size(), MSG_NOSIGNAL);
}

local::Frame Receive(std::span<UniqueFd> descriptors) {
  pollfd readable{self.socket, POLLIN, 0};
  poll(&readable, 1, -1);
  local::Frame frame(kLocalFrameBytesMax);
  const ssize_t bytes =
      ReceiveWithDescriptors(self.socket, frame.data(), frame.size(), descriptors);
  if (bytes <= 0) {
    Say("closed");
    std::exit(4);
  }
  frame.resize(static_cast<size_t>(bytes));
  return frame;
}

void Connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, std::getenv("ELASTIC_AGENT_SOCKET"), sizeof address.sun_path - 1);
  self.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connect(self.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::perror("connect");
    std::exit(3);
  }
}

void PrintRefusal(const local::Frame& frame) {
  const auto refused = local::BodyOf<local::Refused>(frame);
  Say(std::string("refused: ") + (refused.ok() ? refused->message : "?"));
}

void Greet() {
  Connect();
  local::Hello hello{};
  hello.version_min = local::kVersionMin;
  hello.version_max = local::kVersionMax;
  std::strncpy(hello.job_id, std::getenv("ELASTIC_JOB_ID"), sizeof hello.job_id - 1);
  Send(local::MakeFrame(FrameKind::kHello, hello));
  std::array<UniqueFd, 3> descriptors;
  const local::Frame frame = Receive(descriptors);
  const auto welcome = local::BodyOf<local::Welcome>(frame);
  if (local::CheckFrame(frame).value() != FrameKind::kWelcome || !welcome.ok()) {
    PrintRefusal(frame);
    std::exit(5);
  }
  self.page = static_cast<local::ControlPage*>(mmap(nullptr, local::kControlPageBytes,
                                                    PROT_READ | PROT_WRITE, MAP_SHARED,
                                                    descriptors[0].get(), 0));
  if (ftruncate(descriptors[1].get(), 4096) != 0) {
    std::exit(6);
  }
  self.state = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[1].get(), 0);
  self.bell = descriptors[2].Release();
  Say("welcome " + ToString(local::FromWire(welcome->incarnation)));
}

void* HoldMutexAndBeat(void*) {
  auto* mutex = reinterpret_cast<pthread_mutex_t*>(self.page->owner_mutex);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutex_lock(mutex);
  self.page->owner_ready = 1;
  self.locked = true;
  self.locked.notify_all();
  while (!self.gives_up) {
    self.page->beats.fetch_add(1);
    poll(nullptr, 0, 50);
  }
  pthread_mutex_unlock(mutex);
  return nullptr;
}

void DeclareReady() {
  pthread_create(&self.thread, nullptr, HoldMutexAndBeat, nullptr);
  self.locked.wait(false);
  local::Ready ready{};
  ready.data = local::ToWire(Endpoint{"127.0.0.1", 1});
  Send(local::MakeFrame(FrameKind::kReady, ready));
}

void Hold(const GenerationId& generation) {
  std::memcpy(self.state, kState, sizeof kState);
  local::HeldSlot& slot = self.page->held[1];
  slot.generation = generation.number.value;
  slot.commits = 1;
  slot.digest = HashBytes(kState, sizeof kState);
  slot.step = 17;
  slot.offset = 0;
  slot.bytes = sizeof kState;
  self.page->held_index = 1;
  self.page->commit_word = CommitWord{generation.number, 1, false, false}.Pack();
}

void Finish(const GenerationId& generation) {
  local::Finished finished{};
  finished.generation = local::ToWire(generation);
  finished.state = {generation.number.value, 1, HashBytes(kState, sizeof kState), 17};
  Send(local::MakeFrame(FrameKind::kFinished, finished));
}

void Accuse(const Roster& roster) {
  local::Accuse accuse{};
  accuse.generation = local::ToWire(roster.id);
  accuse.accused = local::ToWire(roster.AtRank(1)->incarnation);
  Send(local::MakeFrame(FrameKind::kAccuse, accuse));
}

// Prints the bell and follows rosters until the socket closes or it is told to leave.
void Live(const std::string& mode) {
  local::RosterAssembler assembler;
  for (;;) {
    pollfd polls[] = {{self.socket, POLLIN, 0}, {self.bell, POLLIN, 0}};
    poll(polls, 2, -1);
    if (polls[1].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t bytes = read(self.bell, &count, sizeof count);
      const CommitWord word = CommitWord::Unpack(self.page->commit_word);
      Say("bell " + std::to_string(word.generation.value) + (word.fenced ? " fenced" : " open"));
    }
    if (polls[0].revents == 0) {
      continue;
    }
    const local::Frame frame = Receive({});
    switch (local::CheckFrame(frame).value()) {
      case FrameKind::kRosterPart: {
        const auto roster = assembler.Add(frame).value();
        Say("roster " + std::to_string(roster->id.number.value));
        Hold(roster->id);
        local::Entered entered{};
        entered.generation = local::ToWire(roster->id);
        Send(local::MakeFrame(FrameKind::kEntered, entered));
        if (mode == "finish") {
          Finish(roster->id);
          _exit(0);
        }
        if (mode == "give-up") {  // as the runtime does, but without a frame
          self.gives_up = true;
          pthread_join(self.thread, nullptr);
          close(self.socket);
          poll(nullptr, 0, static_cast<int>(ToMilliseconds(2 * kDyingGrace)));
          std::exit(7);
        }
        if (mode == "accuse") {
          Accuse(*roster);
        }
        break;
      }
      case FrameKind::kLeave:
        Say("told to leave");
        Send(local::MakeFrame(FrameKind::kLeaving));
        _exit(0);
      case FrameKind::kRefused: PrintRefusal(frame); break;
      default: Say("another frame");
    }
  }
}

int Run(const std::string& mode) {
  if (mode == "chatter") {
    for (int i = 0; i < 1000000; ++i) {
      std::printf("line %d of a worker that talks without end\n", i);
    }
    return 0;
  }
  Greet();
  if (mode == "garbage") {
    send(self.socket, "this is no frame", 16, MSG_NOSIGNAL);
    PrintRefusal(Receive({}));
    Receive({});
  }
  if (mode == "hasty") {  // READY without having locked the mutex
    Send(local::MakeFrame(FrameKind::kReady, local::Ready{}));
    PrintRefusal(Receive({}));
  }
  if (mode == "twice") {
    const int first = self.socket;
    Greet();
    close(first);
  }
  DeclareReady();
  Live(mode);
  return 0;
}

}  // namespace
}  // namespace elastic::internal

int main(int argc, char** argv) { return elastic::internal::Run(argc > 1 ? argv[1] : ""); }
