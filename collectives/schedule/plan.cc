#include "collectives/schedule/plan.h"

#include "rendezvous/base/check.h"

namespace elastic::internal {

void Plan::Clear() {
  outbound.clear();
  inbound.clear();
  send_pieces.clear();
  receive_pieces.clear();
  slots = 0;
  result = 0;
}

void Plan::AddOutbound(int peer, int after_inbounds) {
  outbound.push_back({.peer = peer,
                      .after_inbounds = after_inbounds,
                      .slot = -1,
                      .first = send_pieces.size(),
                      .count = 0});
}

void Plan::AddInbound(int peer, int after_outbounds) {
  inbound.push_back({.peer = peer,
                     .after_outbounds = after_outbounds,
                     .slot = -1,
                     .first = receive_pieces.size(),
                     .count = 0});
}

void Plan::Add(const SendPiece& piece) {
  ELASTIC_CHECK(!outbound.empty());
  send_pieces.push_back(piece);
  ++outbound.back().count;
}

void Plan::Add(const ReceivePiece& piece) {
  ELASTIC_CHECK(!inbound.empty());
  receive_pieces.push_back(piece);
  ++inbound.back().count;
}

std::span<const SendPiece> Plan::Pieces(const Outbound& stream) const {
  return std::span(send_pieces).subspan(stream.first, stream.count);
}

std::span<const ReceivePiece> Plan::Pieces(const Inbound& stream) const {
  return std::span(receive_pieces).subspan(stream.first, stream.count);
}

}  // namespace elastic::internal
