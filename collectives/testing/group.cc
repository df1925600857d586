#include "collectives/testing/group.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "collectives/limits.h"
#include "collectives/schedule/schedule.h"
#include "rendezvous/base/check.h"

namespace elastic::internal {

FakeInterrupt::FakeInterrupt() : bell_(NewEventFd()) {}

void FakeInterrupt::End(GenerationNumber number) {
  over_ = number.value;
  Ring();
}

void FakeInterrupt::Ring() { RingEventFd(bell_.get()); }

BlockedThread::BlockedThread(std::function<void()> body)
    : thread_([this, body = std::move(body)] {
        id_ = gettid();
        body();
        ended_ = true;
      }) {}

void BlockedThread::AwaitAsleep() const {
  // Seen asleep several times in a row: a passing sleep on a lock is no wait.
  for (int seen = 0; seen < 20 && !ended_;) {
    std::this_thread::yield();
    if (id_ == 0) {
      continue;
    }
    std::ifstream file("/proc/self/task/" + std::to_string(id_) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    const size_t name_end = text.rfind(')');
    seen = name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'S'
               ? seen + 1
               : 0;
  }
}

GenerationId TestGeneration(uint32_t number) {
  return {.server = {1}, .number = {number}, .roster_digest = 0x1000 + number};
}

WorkerIncarnation TestWorker(int rank) {
  return {.agent = {1}, .counter = static_cast<uint32_t>(rank) + 1};
}

Roster TestRoster(uint32_t number, const std::vector<Endpoint>& endpoints) {
  Roster roster;
  roster.id = TestGeneration(number);
  for (size_t i = 0; i < endpoints.size(); ++i) {
    const auto rank = static_cast<int32_t>(i);
    roster.entries.push_back({.role = Role::kWorker,
                              .incarnation = TestWorker(rank),
                              .rank = rank,
                              .host = "host",
                              .slot = rank,
                              .data = endpoints[i]});
  }
  roster.id.roster_digest = RosterDigest(roster);
  return roster;
}

Roster TestRoster(uint32_t number, const std::vector<std::unique_ptr<Context>>& contexts) {
  std::vector<Endpoint> endpoints;
  for (const auto& context : contexts) {
    endpoints.push_back(context->endpoint());
  }
  return TestRoster(number, endpoints);
}

std::vector<std::unique_ptr<Mesh>> SocketPairMeshes(int size, uint32_t generation,
                                                    Channel channel) {
  const auto scratch = std::make_shared<ScratchPool>(static_cast<size_t>(size));
  std::vector<Mesh::Options> made(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    Mesh::Options& mesh = made[static_cast<size_t>(rank)];
    mesh.generation = TestGeneration(generation);
    mesh.channel = channel;
    mesh.rank = rank;
    mesh.scratch = scratch;
    for (int peer = 0; peer < size; ++peer) {
      mesh.edges.push_back(MeshEdge{.socket = UniqueFd(), .peer = TestWorker(peer)});
    }
  }
  for (int rank = 0; rank < size; ++rank) {
    for (const int peer : EdgePeers({.rank = rank, .size = size}, kFullMeshMax)) {
      if (peer < rank) {
        continue;
      }
      int ends[2];
      ELASTIC_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
      made[static_cast<size_t>(rank)].edges[static_cast<size_t>(peer)].socket.Reset(ends[0]);
      made[static_cast<size_t>(peer)].edges[static_cast<size_t>(rank)].socket.Reset(ends[1]);
    }
  }
  std::vector<std::unique_ptr<Mesh>> meshes;
  for (Mesh::Options& options : made) {
    meshes.push_back(std::make_unique<Mesh>(std::move(options)));
  }
  return meshes;
}

std::vector<std::unique_ptr<Context>> TcpContexts(int size) {
  std::vector<std::unique_ptr<Context>> contexts;
  for (int rank = 0; rank < size; ++rank) {
    auto context = Context::Create({.listen_address = "127.0.0.1",
                                    .job_id = "test-job",
                                    .job_nonce = kTestNonce,
                                    .self = TestWorker(rank)});
    ELASTIC_CHECK(context.ok());
    contexts.push_back(std::move(*context));
  }
  return contexts;
}

void PumpUntil(const std::vector<Context*>& contexts, const std::function<bool()>& done) {
  while (!done()) {
    std::vector<pollfd> waits;
    for (const Context* context : contexts) {
      waits.push_back({.fd = context->event_fd(), .events = POLLIN, .revents = 0});
    }
    poll(waits.data(), waits.size(), -1);
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents != 0) {
        contexts[i]->Progress();
      }
    }
  }
}

std::vector<std::unique_ptr<Mesh>> TcpMeshes(const std::vector<std::unique_ptr<Context>>& contexts,
                                             uint32_t generation, Channel channel) {
  const Roster roster = TestRoster(generation, contexts);
  std::vector<std::unique_ptr<Mesh>> meshes(contexts.size());
  std::vector<Context*> all;
  size_t made = 0;
  for (size_t i = 0; i < contexts.size(); ++i) {
    all.push_back(contexts[i].get());
    contexts[i]->Connect(roster, channel, [&, i](auto mesh) {
      ELASTIC_CHECK(mesh.has_value());
      meshes[i] = std::move(*mesh);
      ++made;
    });
  }
  PumpUntil(all, [&] { return made == contexts.size(); });
  return meshes;
}

Group::Group(Transport transport, int size) {
  if (transport == Transport::kTcp) {
    contexts_ = TcpContexts(size);
  }
  std::vector<std::unique_ptr<Mesh>> meshes =
      transport == Transport::kTcp ? TcpMeshes(contexts_) : SocketPairMeshes(size);
  for (std::unique_ptr<Mesh>& mesh : meshes) {
    interrupts_.push_back(std::make_unique<FakeInterrupt>());
    communicators_.push_back(std::make_unique<Communicator>(std::move(mesh), *interrupts_.back()));
  }
}

void Group::Run(const std::function<void(int)>& body) const {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size(); ++rank) {
    threads.emplace_back([&body, rank] { body(rank); });
  }
}

}  // namespace elastic::internal
