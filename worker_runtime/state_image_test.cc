#include "worker_runtime/state_image.h"

#include <catch2/catch.hpp>

#include "rendezvous/base/limits.h"

namespace elastic::internal {
namespace {

StateImageLayout Place(std::vector<StateImageItem> items) {
  auto layout = PlaceItems(std::move(items));
  REQUIRE(layout.ok());
  return *layout;
}

std::vector<std::byte> ImageOf(const StateImageLayout& layout) {
  std::vector<std::byte> image = EncodeTable(layout);
  image.resize(layout.bytes);
  return image;
}

TEST_CASE("A table says where each item lies, aligned and apart from the others") {
  const StateImageLayout layout = Place({{"bias", 3, 0}, {"empty", 0, 0}, {"weights", 1000, 0}});
  REQUIRE(layout.items[0].offset >= 24 + 3 * 144);
  for (size_t i = 0; i < layout.items.size(); ++i) {
    REQUIRE(layout.items[i].offset % kStateItemAlignment == 0);
    const size_t end = i + 1 < layout.items.size() ? layout.items[i + 1].offset : layout.bytes;
    REQUIRE(layout.items[i].offset + layout.items[i].bytes <= end);
  }
  const auto decoded = DecodeTable(ImageOf(layout));
  REQUIRE(decoded.ok());
  REQUIRE(decoded->items == layout.items);
  REQUIRE(decoded->bytes == layout.bytes);
}

TEST_CASE("An image without items is a table") {
  const auto decoded = DecodeTable(ImageOf(Place({})));
  REQUIRE(decoded.ok());
  REQUIRE(decoded->items.empty());
}

TEST_CASE("State that is not of items is told from a table that contradicts itself") {
  REQUIRE(DecodeTable({}).status().code() == StatusCode::kInvalidArgument);
  const std::vector<std::byte> zeros(4096);
  REQUIRE(DecodeTable(zeros).status().code() == StatusCode::kInvalidArgument);
  std::vector<std::byte> image = ImageOf(Place({{"a", 100, 0}}));
  image.pop_back();
  REQUIRE(DecodeTable(image).status().code() == StatusCode::kDataLoss);
  image.resize(24);
  REQUIRE(DecodeTable(image).status().code() == StatusCode::kDataLoss);
}

// What is copied out of an image must lie in it, whoever made the table.
TEST_CASE("No flipped bit of a table makes an item lie outside the image") {
  const StateImageLayout layout = Place({{"a", 100, 0}, {"b", 64, 0}, {"c", 1, 0}});
  const std::vector<std::byte> image = ImageOf(layout);
  size_t accepted = 0;
  for (size_t bit = 0; bit < layout.items[0].offset * 8; ++bit) {
    std::vector<std::byte> changed = image;
    changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const auto decoded = DecodeTable(changed);
    if (!decoded.ok()) {
      continue;
    }
    ++accepted;  // another name, or a size that the padding has room for
    for (const StateImageItem& item : decoded->items) {
      REQUIRE(item.offset <= image.size());
      REQUIRE(item.bytes <= image.size() - item.offset);
    }
  }
  REQUIRE(accepted > 0);
}

TEST_CASE("State over the limit is refused before anything is sized by it") {
  REQUIRE(PlaceItems({{"a", kStateBytesMax, 0}}).status().code() == StatusCode::kResourceExhausted);
  REQUIRE(PlaceItems({{"a", SIZE_MAX, 0}}).status().code() == StatusCode::kResourceExhausted);
  REQUIRE(
      PlaceItems({{"a", kStateBytesMax / 2, 0}, {"b", kStateBytesMax / 2, 0}}).status().code() ==
      StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace elastic::internal
