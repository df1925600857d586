#include "worker_runtime/link/testing/scripted_agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>

#include "rendezvous/base/limits.h"

namespace elastic::internal::testing {

namespace {

void WaitReadable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  REQUIRE(poll(&wait, 1, ScriptedAgent::kPatienceMs) == 1);
}

}  // namespace

ScriptedAgent::ScriptedAgent(const std::string& folder, WorkerIncarnation self, int32_t slot)
    : path_(folder + "/" + ToString(self) + ".sock"),
      self_(self),
      slot_(slot),
      listener_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)),
      page_fd_(memfd_create("page", MFD_CLOEXEC)),
      state_(memfd_create("state", MFD_CLOEXEC)),
      bell_(eventfd(0, EFD_CLOEXEC)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path_.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path_.data(), path_.size());
  REQUIRE(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(listen(listener_.get(), 1) == 0);
  REQUIRE(ftruncate(page_fd_.get(), local::kControlPageBytes) == 0);
  page_ = static_cast<local::ControlPage*>(mmap(
      nullptr, local::kControlPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd_.get(), 0));
  REQUIRE(page_ != MAP_FAILED);
  page_->magic = local::kControlPageMagic;
  page_->version = local::kControlPageVersion;
}

ScriptedAgent::~ScriptedAgent() {
  munmap(page_, local::kControlPageBytes);
  unlink(path_.c_str());
}

void ScriptedAgent::Accept() {
  WaitReadable(listener_.get());
  link_ = UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(link_.valid());
  const local::Frame frame = Await(local::FrameKind::kHello);
  const auto hello = local::BodyOf<local::Hello>(frame);
  REQUIRE(hello.ok());
}

void ScriptedAgent::Welcome() {
  Accept();
  local::Welcome welcome{};
  welcome.incarnation = local::ToWire(self_);
  welcome.job_nonce = 77;
  std::strcpy(welcome.listen_address, "127.0.0.1");
  local::Frame frame = local::MakeFrame(local::FrameKind::kWelcome, welcome);
  iovec part{frame.data(), frame.size()};
  const std::array<int, 3> descriptors{page_fd_.get(), state_.get(), bell_.get()};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof descriptors)> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof descriptors);
  std::memcpy(CMSG_DATA(rights), descriptors.data(), sizeof descriptors);
  REQUIRE(sendmsg(link_.get(), &header, MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size()));
}

void ScriptedAgent::Refuse(const std::string& message) {
  Accept();
  local::Refused refused{};
  std::strncpy(refused.message, message.c_str(), sizeof refused.message - 1);
  Send(local::MakeFrame(local::FrameKind::kRefused, refused));
}

local::Frame ScriptedAgent::Await(local::FrameKind kind) {
  while (true) {
    WaitReadable(link_.get());
    local::Frame frame(kLocalFrameBytesMax);
    const ssize_t bytes = recv(link_.get(), frame.data(), frame.size(), 0);
    REQUIRE(bytes > 0);
    frame.resize(static_cast<size_t>(bytes));
    const auto found = local::CheckFrame(frame);
    REQUIRE(found.ok());
    if (*found == kind) {
      return frame;
    }
  }
}

RosterEntry ScriptedAgent::AwaitReady() {
  const local::Frame frame = Await(local::FrameKind::kReady);
  const auto ready = local::BodyOf<local::Ready>(frame);
  REQUIRE(ready.ok());
  const auto endpoint = local::FromWire(ready->data);
  REQUIRE(endpoint.ok());
  return {.role = Role::kWorker,
          .incarnation = self_,
          .rank = -1,
          .previous_rank = -1,
          .host = "127.0.0.1",
          .slot = slot_,
          .data = *endpoint,
          .holds_resume = false};
}

void ScriptedAgent::Send(local::Frame frame) {
  REQUIRE(send(link_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(frame.size()));
}

void ScriptedAgent::SendRoster(const Roster& roster) {
  for (local::Frame& frame : local::RosterFrames(roster)) {
    Send(std::move(frame));
  }
}

void ScriptedAgent::Ring() { REQUIRE(eventfd_write(bell_.get(), 1) == 0); }

void ScriptedAgent::Reset(const GenerationId& generation) {
  auto& slot = page_->identity[generation.number.value % local::kIdentitySlots];
  slot.server = generation.server.value;
  slot.digest = generation.roster_digest;
  slot.number = generation.number.value;
  page_->commit_word = CommitWord{.generation = generation.number}.Pack();
  Ring();
}

void ScriptedAgent::Fence() {
  page_->commit_word.fetch_or(CommitWord::kFencedBit);
  Ring();
}

CommitWord ScriptedAgent::word() const { return CommitWord::Unpack(page_->commit_word.load()); }

uint32_t ScriptedAgent::OwnerWord() const {
  uint32_t word = 0;
  std::memcpy(&word, page_->owner_mutex, sizeof word);
  return word;
}

Held ScriptedAgent::held() const {
  const auto& slot = page_->held[page_->held_index % 2];
  return {.version = {GenerationNumber{slot.generation}, slot.commits},
          .digest = slot.digest,
          .step = slot.step};
}

std::vector<std::byte> ScriptedAgent::HeldBytes() const {
  const auto& slot = page_->held[page_->held_index % 2];
  std::vector<std::byte> bytes(slot.bytes);
  REQUIRE(pread(state_.get(), bytes.data(), bytes.size(), static_cast<off_t>(slot.offset)) ==
          static_cast<ssize_t>(bytes.size()));
  return bytes;
}

void ScriptedAgent::CloseLink() { link_ = UniqueFd(); }

Roster MakeRoster(const RosterPlan& plan, std::vector<RosterEntry> entries) {
  Roster roster{.id = {.server = ServerIncarnation{1},
                       .number = GenerationNumber{plan.number},
                       .roster_digest = 0},
                .kind = plan.kind,
                .parent = GenerationNumber{plan.parent},
                .resume = plan.resume,
                .entries = std::move(entries)};
  int32_t rank = 0;
  for (RosterEntry& entry : roster.entries) {
    entry.rank = rank++;
  }
  roster.id.roster_digest = RosterDigest(roster);
  return roster;
}

}  // namespace elastic::internal::testing
