#include <catch2/catch.hpp>

#include "rendezvous/base/commit_word.h"
#include "rendezvous/base/hash.h"
#include "rendezvous/base/roster.h"
#include "rendezvous/base/time.h"

namespace elastic::internal {
namespace {

TEST_CASE("Durations take a suffix and a bare number is seconds") {
  CHECK(*ParseDuration("300ms") == std::chrono::milliseconds(300));
  CHECK(*ParseDuration("3") == std::chrono::seconds(3));
  CHECK(*ParseDuration("0.5s") == std::chrono::milliseconds(500));
  CHECK(*ParseDuration("10m") == std::chrono::minutes(10));
  for (const char* bad : {"", "s", "-1s", "3 s", "1d", "1e400", "nan", "3sx"}) {
    CAPTURE(bad);
    CHECK(ParseDuration(bad).status().code() == StatusCode::kInvalidArgument);
  }
}

TEST_CASE("Durations are written for people, without exponents") {
  CHECK(FormatDuration(std::chrono::seconds(3)) == "3s");
  CHECK(FormatDuration(std::chrono::milliseconds(1250)) == "1.25s");
  CHECK(FormatDuration(std::chrono::microseconds(999'900)) == "1000ms");
  CHECK(FormatDuration(std::chrono::microseconds(40)) == "40us");
  CHECK(FormatDuration(std::chrono::minutes(10)) == "600s");
  CHECK(FormatDuration(std::chrono::milliseconds(999'900)) == "1000s");
}

TEST_CASE("A commit word survives packing with every field at its limits") {
  const CommitWord word{GenerationNumber{0xFFFFFFFF}, CommitWord::kCommitsMax, true, true};
  CHECK(CommitWord::Unpack(word.Pack()) == word);
  CHECK(CommitWord::Unpack(0) == CommitWord{});
  CHECK(CommitWord{GenerationNumber{1}, 2, false, true}.final_after_fence());
  CHECK_FALSE(CommitWord{GenerationNumber{1}, 2, true, true}.final_after_fence());
}

TEST_CASE("A digest changes with every single byte and with the length") {
  std::string bytes(300, 'x');
  const uint64_t digest = HashText(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string other = bytes;
    other[i] = 'y';
    CHECK(HashText(other) != digest);
  }
  CHECK(HashText(bytes.substr(1)) != digest);
}

TEST_CASE("Placement follows host and slot and allows gaps") {
  Roster roster;
  const auto add = [&](int rank, const char* host, int slot) {
    roster.entries.push_back({.incarnation = {{1}, static_cast<uint32_t>(rank + 1)},
                              .rank = rank,
                              .host = host,
                              .slot = slot});
  };
  add(0, "a", 1);
  add(1, "b", 0);
  add(2, "b", 1);
  const auto place = PlacementOf(roster, {{1}, 3});
  REQUIRE(place.has_value());
  CHECK(place->size == 3);
  CHECK(place->local_rank == 1);
  CHECK(place->local_index == 1);
  CHECK(place->local_size == 2);
  CHECK(place->cross_rank == 1);
  CHECK(place->cross_size == 2);
  CHECK_FALSE(place->local_leader);
  CHECK_FALSE(PlacementOf(roster, {{9}, 9}).has_value());
}

}  // namespace
}  // namespace elastic::internal
