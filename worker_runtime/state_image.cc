#include "worker_runtime/state_image.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

constexpr uint32_t kMagic = 0x31534C45;  // "ELS1"
constexpr uint32_t kVersion = 1;

struct Header {
  uint32_t magic;
  uint32_t version;
  uint32_t items;
  uint32_t reserved;
  uint64_t bytes;
};
struct Record {
  uint64_t bytes;
  uint64_t offset;
  char name[kStateItemNameBytesMax + 1];
};
static_assert(sizeof(Header) == 24 && sizeof(Record) == 144);

size_t Align(size_t offset) {
  return (offset + kStateItemAlignment - 1) / kStateItemAlignment * kStateItemAlignment;
}

size_t TableBytes(size_t items) { return Align(sizeof(Header) + items * sizeof(Record)); }

template <class Struct>
Struct Read(std::span<const std::byte> image, size_t offset) {
  Struct value;
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

Status Contradiction(const std::string& what) {
  return DataLossError(StrCat("the committed state's table of items contradicts itself: ", what));
}

}  // namespace

StatusOr<StateImageLayout> PlaceItems(std::vector<StateImageItem> items) {
  StateImageLayout layout{.items = std::move(items), .bytes = 0};
  layout.bytes = TableBytes(layout.items.size());
  for (StateImageItem& item : layout.items) {
    item.offset = layout.bytes;
    if (item.bytes > kStateBytesMax || Align(item.bytes) > kStateBytesMax - item.offset) {
      return ResourceExhaustedError(StrCat("state of more than ", kStateBytesMax,
                                           " bytes with item \"", item.name, "\" of ", item.bytes,
                                           ": register less"));
    }
    layout.bytes += Align(item.bytes);
  }
  return layout;
}

std::vector<std::byte> EncodeTable(const StateImageLayout& layout) {
  std::vector<std::byte> table(TableBytes(layout.items.size()));
  const Header header{.magic = kMagic,
                      .version = kVersion,
                      .items = static_cast<uint32_t>(layout.items.size()),
                      .reserved = 0,
                      .bytes = layout.bytes};
  std::memcpy(table.data(), &header, sizeof header);
  size_t at = sizeof header;
  for (const StateImageItem& item : layout.items) {
    Record record{.bytes = item.bytes, .offset = item.offset, .name = {}};
    item.name.copy(record.name, kStateItemNameBytesMax);
    std::memcpy(table.data() + at, &record, sizeof record);
    at += sizeof record;
  }
  return table;
}

StatusOr<StateImageLayout> DecodeTable(std::span<const std::byte> image) {
  const auto header = image.size() < sizeof(Header) ? Header{} : Read<Header>(image, 0);
  if (header.magic != kMagic || header.version != kVersion) {
    return InvalidArgumentError(
        StrCat("the state of this job, ", image.size(),
               " bytes, was not committed from items of elastic_register by this release: start "
               "the same program on all hosts"));
  }
  if (header.items > kStateItemsMax || header.bytes != image.size() ||
      TableBytes(header.items) > image.size()) {
    return Contradiction(
        StrCat(header.items, " items, ", header.bytes, " of ", image.size(), " bytes"));
  }
  std::vector<StateImageItem> items;
  std::vector<size_t> offsets;
  for (size_t i = 0; i < header.items; ++i) {
    const auto record = Read<Record>(image, sizeof(Header) + i * sizeof(Record));
    items.push_back({.name = std::string(record.name, strnlen(record.name, sizeof record.name)),
                     .bytes = record.bytes,
                     .offset = 0});
    offsets.push_back(record.offset);
    const StateImageItem& item = items.back();
    if (item.name.empty() || item.name.size() > kStateItemNameBytesMax ||
        (i > 0 && item.name <= items[i - 1].name)) {
      return Contradiction(StrCat("item ", i, " is named \"", item.name, "\""));
    }
  }
  // Where the items lie follows from their sizes, so nothing else needs to be checked.
  StatusOr<StateImageLayout> layout = PlaceItems(std::move(items));
  if (!layout.ok() || layout->bytes != image.size() ||
      !std::ranges::equal(layout->items, offsets, {}, &StateImageItem::offset)) {
    return Contradiction("sizes and offsets do not fit each other");
  }
  return layout;
}

}  // namespace elastic::internal
