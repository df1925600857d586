// The two directions of an edge: what Exchange sends and receives without waiting.

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collectives/exchange.h"
#include "rendezvous/base/check.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

// A header's rest and a part of the body, as one system call takes them.
struct Vector {
  iovec parts[2];
  size_t count = 0;
  void Add(const void* data, size_t bytes) {
    if (bytes > 0) {
      parts[count++] = {const_cast<void*>(data), bytes};
    }
  }
  msghdr Message() {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    return message;
  }
};

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

// ---- sending
// -------------------------------------------------------------------------------------

bool Exchange::MaySend(const Outbound& stream) const {
  const auto first = receiving_.begin();
  return std::all_of(first, first + stream.after_inbounds,
                     [](const Receiving& inbound) { return inbound.done; });
}

// Its slot does not change from the moment on at which the stream may begin.
const MessageHeaderBytes& Exchange::HeaderOf(const Outbound& stream) {
  if (stream.slot >= 0) {
    PutAgreement(header_, slots_[static_cast<size_t>(stream.slot)]);
  }
  return header_;
}

Exchange::Span<const std::byte> Exchange::ReadyToSend(size_t index) const {
  const Sending& state = sending_[index];
  const auto pieces = plan_.Pieces(plan_.outbound[index]);
  if (state.piece == pieces.size()) {
    return {};
  }
  const SendPiece& piece = pieces[state.piece];
  if (piece.buffer == Buffer::kAgreement) {
    const Receiving& source = receiving_[static_cast<size_t>(piece.follows)];
    if (source.merged < piece.follows_offset) {
      return {};
    }
    return {reinterpret_cast<const std::byte*>(&slots_[piece.offset]) + state.piece_sent,
            piece.bytes - state.piece_sent};
  }
  size_t limit = piece.bytes;
  if (piece.follows >= 0) {
    const size_t consumed = receiving_[static_cast<size_t>(piece.follows)].consumed;
    limit = consumed < piece.follows_offset
                ? 0
                : std::min(piece.bytes, consumed - piece.follows_offset);
  }
  if (limit <= state.piece_sent) {
    return {};
  }
  const std::byte* base = piece.buffer == Buffer::kInput    ? work_.input
                          : piece.buffer == Buffer::kOutput ? work_.output
                                                            : scratch_.get();
  return {base + piece.offset + state.piece_sent,
          std::min(limit - state.piece_sent, kSendBytesMax)};
}

void Exchange::SkipSent(size_t index) {
  Sending& state = sending_[index];
  const auto pieces = plan_.Pieces(plan_.outbound[index]);
  while (state.piece < pieces.size() && state.piece_sent == pieces[state.piece].bytes) {
    ++state.piece;
    state.piece_sent = 0;
  }
  state.done = state.header_sent == kMessageHeaderBytes && state.piece == pieces.size();
}

// One system call at most. True if bytes left.
bool Exchange::Send(size_t index) {
  Sending& state = sending_[index];
  const Outbound& stream = plan_.outbound[index];
  Edge& edge = edges_[static_cast<size_t>(stream.peer)];
  ELASTIC_CHECK(edge.socket >= 0);
  if (state.done || !edge.writable || !MaySend(stream)) {
    return false;
  }
  SkipSent(index);
  Vector vector;
  vector.Add(HeaderOf(stream).data() + state.header_sent, kMessageHeaderBytes - state.header_sent);
  const Span<const std::byte> body = ReadyToSend(index);
  vector.Add(body.data, body.bytes);
  if (vector.count == 0) {
    return false;
  }
  const msghdr message = vector.Message();
  const ssize_t sent = sendmsg(edge.socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) {
    if (!WouldBlock(errno)) {
      PeerBroke(stream.peer, std::strerror(errno));
      return false;
    }
    if (errno != EINTR && edge.ended) {  // a full buffer that nobody will ever empty
      PeerBroke(stream.peer, "end of stream");
      return false;
    }
    edge.writable = errno == EINTR;
    return edge.writable;
  }
  auto left = static_cast<size_t>(sent);
  const size_t of_header = std::min(left, kMessageHeaderBytes - state.header_sent);
  state.header_sent += of_header;
  state.piece_sent += left - of_header;
  SkipSent(index);
  return true;
}

// ---- receiving
// -----------------------------------------------------------------------------------

bool Exchange::MayReceive(const Inbound& stream) const {
  const auto first = sending_.begin();
  return std::all_of(first, first + stream.after_outbounds,
                     [](const Sending& outbound) { return outbound.done; });
}

size_t Exchange::StageBytes() const {
  // Divided among the streams, since several of them may hold a torn element at one time.
  return kScratchBytes / std::max<size_t>(receiving_.size(), 1) / 64 * 64;
}

std::byte* Exchange::Stage(size_t index) const { return scratch_.get() + index * StageBytes(); }

Exchange::Span<std::byte> Exchange::RoomToReceive(size_t index) {
  Receiving& state = receiving_[index];
  const auto pieces = plan_.Pieces(plan_.inbound[index]);
  if (state.piece == pieces.size()) {
    return {};
  }
  const ReceivePiece& piece = pieces[state.piece];
  const size_t left = piece.bytes - state.piece_got - state.staged;
  switch (piece.take) {
    case Take::kStore:
      return {work_.output + piece.offset + state.piece_got, std::min(left, kReceiveBytesMax)};
    case Take::kStage: return {scratch_.get() + piece.offset + state.piece_got, left};
    case Take::kReduce:
    case Take::kReduceAndFinish:
      return {Stage(index) + state.staged, std::min(left, StageBytes() - state.staged)};
    case Take::kMerge: return {state.agreement.data() + state.piece_got, left};
  }
  return {};
}

void Exchange::SkipReceived(size_t index) {
  Receiving& state = receiving_[index];
  const auto pieces = plan_.Pieces(plan_.inbound[index]);
  while (state.piece < pieces.size() && state.piece_got == pieces[state.piece].bytes) {
    ++state.piece;
    state.piece_got = 0;
  }
  state.done = state.header_got == kMessageHeaderBytes && state.piece == pieces.size();
}

void Exchange::ReduceStaged(size_t index, const ReceivePiece& piece) {
  Receiving& state = receiving_[index];
  const size_t elements = state.staged / work_.element_bytes;
  const size_t whole = elements * work_.element_bytes;
  if (whole == 0) {
    return;
  }
  const size_t offset = piece.offset + state.piece_got;
  if (work_.kernel != nullptr) {
    work_.kernel(Stage(index), work_.input + offset, work_.output + offset, elements);
  }
  if (piece.take == Take::kReduceAndFinish && work_.finish != nullptr) {
    work_.finish(work_.output + offset, elements, mesh_.size());
  }
  state.staged -= whole;
  std::memmove(Stage(index), Stage(index) + whole, state.staged);
  state.piece_got += whole;
  state.consumed += whole;
}

void Exchange::MergeCame(size_t index, const ReceivePiece& piece, size_t bytes) {
  Receiving& state = receiving_[index];
  state.piece_got += bytes;
  if (state.piece_got == kAgreementBytes) {
    Agreement came;
    std::memcpy(&came, state.agreement.data(), sizeof came);
    slots_[piece.offset] = Merge(slots_[piece.offset - 1], came);
    ++state.merged;
  }
}

void Exchange::Took(size_t index, size_t bytes) {
  Receiving& state = receiving_[index];
  const ReceivePiece& piece = plan_.Pieces(plan_.inbound[index])[state.piece];
  if (piece.take == Take::kMerge) {
    MergeCame(index, piece, bytes);
    return;
  }
  if (piece.take == Take::kStore || piece.take == Take::kStage) {
    state.piece_got += bytes;
    state.consumed += bytes;
    return;
  }
  state.staged += bytes;
  ReduceStaged(index, piece);
}

void Exchange::HeaderCame(size_t index) {
  Receiving& state = receiving_[index];
  if (SameCall(state.header, header_)) {
    if (const int slot = plan_.inbound[index].slot; slot >= 0) {
      const Agreement came = AgreementIn(state.header);
      std::for_each(slots_.begin() + slot, slots_.end(),
                    [&](Agreement& value) { value = Merge(value, came); });
      ++state.merged;
    }
    return;
  }
  CallsDiffer(index);
}

// Ranks that commit unequally differ in their calls too, and then that is the cause to be told.
void Exchange::CallsDiffer(size_t index) {
  const MessageHeaderBytes& theirs = receiving_[index].header;
  std::string text =
      StrCat("rank ", mesh_.rank(), " called ", DescribeHeader(header_), " but rank ",
             plan_.inbound[index].peer, " called ", DescribeHeader(theirs));
  const Agreement both = Merge(own_, CarriesAgreement(theirs) ? AgreementIn(theirs) : own_);
  text += both.least.SameCommit(both.most)
              ? ": all ranks must make the same calls in the same order"
              : "; " + DescribeUnequal(both.least, both.most);
  failed_ = InvalidArgumentError(std::move(text));
}

// One system call at most. True if bytes came.
bool Exchange::Receive(size_t index) {
  Receiving& state = receiving_[index];
  const Inbound& stream = plan_.inbound[index];
  Edge& edge = edges_[static_cast<size_t>(stream.peer)];
  ELASTIC_CHECK(edge.socket >= 0);
  if (state.done || !edge.readable || !MayReceive(stream)) {
    return false;
  }
  SkipReceived(index);
  const size_t header_left = kMessageHeaderBytes - state.header_got;
  Vector vector;
  vector.Add(state.header.data() + state.header_got, header_left);
  const Span<std::byte> room = RoomToReceive(index);
  vector.Add(room.data, room.bytes);
  msghdr message = vector.Message();
  const ssize_t got = recvmsg(edge.socket, &message, MSG_DONTWAIT);
  if (got < 0 && WouldBlock(errno)) {
    edge.readable = errno == EINTR;
    return edge.readable;
  }
  if (got <= 0) {
    PeerBroke(stream.peer, got == 0 ? "end of stream" : std::strerror(errno));
    return false;
  }
  const size_t of_header = std::min(static_cast<size_t>(got), header_left);
  state.header_got += of_header;
  if (of_header > 0 && state.header_got == kMessageHeaderBytes) {
    HeaderCame(index);
    if (!failed_.ok()) {
      return true;
    }
  }
  if (static_cast<size_t>(got) > of_header) {
    Took(index, static_cast<size_t>(got) - of_header);
  }
  SkipReceived(index);
  return true;
}

}  // namespace elastic::internal
