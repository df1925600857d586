// Complete meshes: handed out to their owner, and taken back when an edge breaks before it was
// used.
//
// A mesh that nobody has used may lose an edge without harm, if both ends agree that it was not
// used. So an edge is made anew only by an end that has not used it (it has the mesh back, or never
// had it), and the other end takes the new connection only if it can get its own mesh back as well.
// Else it refuses, and the edge is a broken link of that generation like any other (P18).

#include <sys/epoll.h>

#include "collectives/transport/context_impl.h"
#include "rendezvous/base/check.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

void Context::Impl::Finish(AssemblyKey key) {
  auto taken = assemblies.extract(key);
  Assembly& assembly = taken.mapped();
  Mesh::Options made{.generation = assembly.roster.id,
                     .channel = key.second,
                     .rank = assembly.rank,
                     .edges = {},
                     .scratch = scratch};
  for (int rank = 0; rank < assembly.roster.size(); ++rank) {
    MeshEdge edge;
    edge.peer = assembly.roster.AtRank(rank)->incarnation;
    if (const uint64_t id = std::exchange(assembly.edges[static_cast<size_t>(rank)].up, 0);
        id != 0) {
      edge.socket = HandOut(id, key);
    }
    made.edges.push_back(std::move(edge));
  }
  // std::function must be copyable, a mesh is not; nobody else keeps the pointer.
  auto mesh = std::make_shared<std::unique_ptr<Mesh>>(std::make_unique<Mesh>(std::move(made)));
  Call(key.first, [done = assembly.done, mesh] { done(std::move(*mesh)); });
  handed_out.insert(std::move(taken));
}

// The socket stays in the set of the context until its owner closes it, and its end is reported
// once.
UniqueFd Context::Impl::HandOut(uint64_t id, AssemblyKey key) {
  const std::unique_ptr<Connection> connection = std::move(connections.at(id));
  connections.erase(id);
  if (options.give_back) {
    Watch(*connection, EPOLLRDHUP | EPOLLONESHOT);
    watched.emplace(id, key);
  } else {
    epoll_ctl(epoll.get(), EPOLL_CTL_DEL, connection->socket.get(), nullptr);
  }
  return std::move(connection->socket);
}

Context::Impl::Assembly* Context::Impl::Reclaim(AssemblyKey key) {
  const auto found = handed_out.find(key);
  if (found == handed_out.end() || !options.give_back) {
    return nullptr;
  }
  const std::unique_ptr<Mesh> mesh = options.give_back(found->second.roster.id, key.second);
  if (mesh == nullptr) {
    return nullptr;
  }
  std::erase_if(watched, [&](const auto& item) { return item.second == key; });
  Assembly& assembly = assemblies.insert(handed_out.extract(found)).position->second;
  assembly.failed = false;
  for (int rank = 0; rank < mesh->size(); ++rank) {
    UniqueFd socket = mesh->Release(rank);
    if (!socket.valid()) {
      continue;
    }
    epoll_ctl(epoll.get(), EPOLL_CTL_DEL, socket.get(), nullptr);
    Connection& connection = Add(std::move(socket), Connection::State::kUp, EPOLLRDHUP);
    connection.rank = rank;
    connection.hello.channel = key.second;
    connection.hello.generation = assembly.roster.id;
    assembly.edges[static_cast<size_t>(rank)].up = connection.id;
  }
  return &assembly;
}

}  // namespace elastic::internal
