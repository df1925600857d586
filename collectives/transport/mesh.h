#pragma once

#include <memory>
#include <vector>

#include "collectives/scratch.h"
#include "collectives/transport/socket.h"
#include "collectives/types.h"

namespace elastic::internal {

// The connected edges of one generation and channel: what a communicator is made of. Made by
// Context::Connect from TCP connections, or by tests from socket pairs: any non-blocking stream
// sockets will do. Which ranks are connected is EdgePeers' choice.
struct MeshEdge {
  UniqueFd socket;  // invalid: no edge to that rank
  WorkerIncarnation peer;
};

class Mesh {
 public:
  struct Options {
    GenerationId generation;
    Channel channel = Channel::kMain;
    int rank = 0;
    std::vector<MeshEdge> edges;  // one per rank, the own one without a socket
    std::shared_ptr<ScratchPool> scratch;
  };
  explicit Mesh(Options options) : options_(std::move(options)) {}

  const GenerationId& generation() const { return options_.generation; }
  Channel channel() const { return options_.channel; }
  int rank() const { return options_.rank; }
  int size() const { return static_cast<int>(options_.edges.size()); }
  const MeshEdge& edge(int rank) const { return options_.edges[static_cast<size_t>(rank)]; }
  ScratchPool& scratch() const { return *options_.scratch; }
  // Takes a connection out, for a mesh that was not used and is being made anew.
  UniqueFd Release(int rank) { return std::move(options_.edges[static_cast<size_t>(rank)].socket); }

 private:
  Options options_;
};

}  // namespace elastic::internal
