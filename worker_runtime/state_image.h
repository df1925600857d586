#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rendezvous/base/status.h"

namespace elastic::internal {

// The committed copy of state that a program keeps in place: a table, then the items' bytes, so
// that names and sizes are part of what is committed, served, compared and restored. Version 1,
// little-endian, all of it covered by the version's digest:
//
//   0   u32 magic "ELS1"      4  u32 version      8  u32 items      12  u32 zero
//   16  u64 bytes of the whole image
//   24  per item, ordered by name: u64 bytes, u64 offset, char name[kStateItemNameBytesMax + 1]
//
// Each item begins at a multiple of kStateItemAlignment, in the order of the table; gaps are zero.
inline constexpr size_t kStateItemAlignment = 64;

struct StateImageItem {
  std::string name;
  size_t bytes = 0;
  size_t offset = 0;  // in the image
  friend bool operator==(const StateImageItem&, const StateImageItem&) = default;
};

struct StateImageLayout {
  std::vector<StateImageItem> items;  // ordered by name
  size_t bytes = 0;                   // of the whole image
};

// Places items of these names and sizes, given ordered by name; their offsets are filled in.
// Errors: RESOURCE_EXHAUSTED for an image over kStateBytesMax.
StatusOr<StateImageLayout> PlaceItems(std::vector<StateImageItem> items);

// The table's bytes, up to where the first item begins.
std::vector<std::byte> EncodeTable(const StateImageLayout& layout);

// The layout of an image that may come from anywhere: every item lies within it.
// Errors: INVALID_ARGUMENT when it is no image of this version; DATA_LOSS for a table that
// contradicts itself.
StatusOr<StateImageLayout> DecodeTable(std::span<const std::byte> image);

}  // namespace elastic::internal
