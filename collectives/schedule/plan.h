#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace elastic::internal {

// One rank's part in a collective, as data. A collective is, on each edge and in each direction,
// one message: a header and a body that is a stream of pieces. There are no rounds and no chunk
// protocol: a piece that forwards what another stream brings may leave byte by byte as that stream
// is consumed, so that transfer and reduction overlap by themselves. Who interprets a plan (the
// communicator over sockets, the tests over memory) is no business of the schedule.

enum class Buffer : uint8_t { kInput, kOutput, kScratch, kAgreement };

struct SendPiece {
  Buffer buffer = Buffer::kInput;
  size_t offset = 0;
  size_t bytes = 0;
  // Byte j may leave once inbound stream `follows` has consumed more than follows_offset + j
  // bytes; -1: at once.
  int follows = -1;
  size_t follows_offset = 0;
  // kAgreement: the value of slot `offset`, whole, once stream `follows` has merged
  // `follows_offset` values.
};

enum class Take : uint8_t {
  kStore,            // output = received
  kStage,            // scratch = received
  kReduce,           // output = reduce(received, input)
  kReduceAndFinish,  // the same, and the element is complete: an average divides here, once
  kMerge,            // slot `offset` = merge of the slot before it and the received agreement
};

struct ReceivePiece {
  Take take = Take::kStore;
  size_t offset = 0;
  size_t bytes = 0;
};

struct Outbound {
  int peer = 0;
  int after_inbounds = 0;  // nothing leaves before that many first inbound streams are complete
  int slot = -1;           // whose agreement its header carries; -1: none
  size_t first = 0;        // pieces [first, first + count) of Plan::send_pieces
  size_t count = 0;
};

struct Inbound {
  int peer = 0;
  int after_outbounds = 0;  // nothing is taken before that many first outbound streams have left
  int slot = -1;            // which the agreement in its header is merged into, and all after it
  size_t first = 0;
  size_t count = 0;
};

// Refilled for every operation; clear() keeps the memory.
//
// A world collective also carries an agreement (agreement.h). Its values lie in slots: each holds
// the own contribution at first, what is sent does not change while it is sent, and `result` is the
// merge over all ranks when the plan is done. A plan without slots carries none.
struct Plan {
  std::vector<Outbound> outbound;
  std::vector<Inbound> inbound;
  std::vector<SendPiece> send_pieces;
  std::vector<ReceivePiece> receive_pieces;
  int slots = 0;
  int result = 0;

  void Clear();
  void AddOutbound(int peer, int after_inbounds = 0);
  void AddInbound(int peer, int after_outbounds = 0);
  void Add(const SendPiece& piece);     // to the newest outbound stream
  void Add(const ReceivePiece& piece);  // to the newest inbound stream
  std::span<const SendPiece> Pieces(const Outbound& stream) const;
  std::span<const ReceivePiece> Pieces(const Inbound& stream) const;
};

// A rank and the number of ranks, 0 <= rank < size.
struct Position {
  int rank = 0;
  int size = 1;
};

}  // namespace elastic::internal
