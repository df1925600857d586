#include "rendezvous/core/resume.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <vector>

namespace elastic::internal {
namespace {

StateVersion V(uint32_t generation, uint32_t commits) { return {{generation}, commits}; }
Held H(uint32_t generation, uint32_t commits) { return {.version = V(generation, commits)}; }

// What really happened, told by replaying it: the history of versions that lead to the present.
struct Naive {
  struct Generation {
    GenerationKind kind = GenerationKind::kInstalled;
    uint32_t parent = 0;
    StateVersion resume;
  };
  std::map<uint32_t, Generation> generations;
  static constexpr uint32_t kCommitsMax = 3;

  // All versions with which `tip` could be at some time: its own, and those it grew out of.
  std::set<StateVersion> Line(uint32_t tip) const {
    std::set<StateVersion> line;
    for (uint32_t c = 0; c <= kCommitsMax; ++c) {
      line.insert(V(tip, c));
    }
    const Generation& generation = generations.at(tip);
    if (generation.resume.valid()) {
      for (const StateVersion& version : Line(generation.resume.generation.value)) {
        if (version <= generation.resume) {
          line.insert(version);
        }
      }
    } else if (generation.kind == GenerationKind::kPrepared) {
      const std::set<StateVersion> before = Line(generation.parent);
      line.insert(before.begin(), before.end());
    }
    return line;
  }
};

}  // namespace

TEST_CASE("A version past the point where its generation was left is on no later line") {
  Lineage lineage;
  lineage.Add({1}, GenerationKind::kInstalled, {}, {});
  lineage.Add({2}, GenerationKind::kInstalled, {1}, V(1, 3));
  CHECK(lineage.OnLine(V(1, 3), {2}));
  CHECK_FALSE(lineage.OnLine(V(1, 4), {2}));
  CHECK(lineage.OnLine(V(1, 4), {1}));
  CHECK(lineage.OnLine(V(2, 900), {2}));
  CHECK_FALSE(lineage.OnLine({}, {2}));
}

TEST_CASE("An abandoned line loses against the living one however far it got") {
  Lineage lineage;
  lineage.Add({1}, GenerationKind::kInstalled, {}, {});
  lineage.Add({2}, GenerationKind::kInstalled, {1}, V(1, 3));
  lineage.Add({3}, GenerationKind::kInstalled, {1}, V(1, 3));
  const std::vector<Held> offers = {H(2, 1000), H(3, 1), H(1, 3)};
  CHECK(ChooseResume(lineage, {3}, offers).version == V(3, 1));
}

TEST_CASE("Until the boundary is learned every version of the parent counts, then none past it") {
  Lineage lineage;
  lineage.Add({1}, GenerationKind::kInstalled, {}, {});
  lineage.Add({2}, GenerationKind::kPrepared, {1}, {});
  CHECK(lineage.OnLine(V(1, 7), {2}));
  lineage.LearnBoundary({2}, V(1, 6));
  CHECK(lineage.ResumeOf({2}) == V(1, 6));
  CHECK_FALSE(lineage.OnLine(V(1, 7), {2}));
  CHECK(lineage.OnLine(V(1, 6), {2}));
}

TEST_CASE("Without an offer on the line nothing is chosen") {
  Lineage lineage;
  lineage.Add({1}, GenerationKind::kInstalled, {}, {});
  lineage.Add({2}, GenerationKind::kInstalled, {1}, {});
  const std::vector<Held> offers = {Held{}, H(1, 5)};
  CHECK_FALSE(ChooseResume(lineage, {2}, offers).valid());
}

TEST_CASE("Lines agree with a replay for every history of up to four generations") {
  // Each generation after the first is made from any earlier one: prepared with an unknown
  // boundary, installed without state, or installed from one of the versions on that one's line.
  int checked = 0;
  const auto verify = [&](const Naive& naive) {
    Lineage lineage;
    for (const auto& [number, generation] : naive.generations) {
      lineage.Add({number}, generation.kind, {generation.parent}, generation.resume);
    }
    for (const auto& [tip, unused] : naive.generations) {
      const std::set<StateVersion> line = naive.Line(tip);
      for (uint32_t g = 1; g <= naive.generations.size(); ++g) {
        for (uint32_t c = 0; c <= Naive::kCommitsMax; ++c) {
          REQUIRE(lineage.OnLine(V(g, c), {tip}) == line.contains(V(g, c)));
          ++checked;
        }
      }
    }
  };
  const auto extend = [&](const auto& self, const Naive& naive) -> void {
    verify(naive);
    const auto next = static_cast<uint32_t>(naive.generations.size()) + 1;
    if (next > 4) {
      return;
    }
    for (uint32_t parent = 1; parent < next; ++parent) {
      Naive more = naive;
      more.generations[next] = {GenerationKind::kPrepared, parent, {}};
      self(self, more);
      more.generations[next] = {GenerationKind::kInstalled, parent, {}};
      self(self, more);
      for (const StateVersion& version : naive.Line(parent)) {
        more.generations[next] = {GenerationKind::kInstalled, parent, version};
        self(self, more);
      }
    }
  };
  Naive first;
  first.generations[1] = {};
  extend(extend, first);
  CHECK(checked > 10000);
}

TEST_CASE("Of a long line the newest generations are kept") {
  Lineage lineage;
  lineage.Add({1}, GenerationKind::kInstalled, {}, {});
  for (uint32_t number = 2; number <= 6; ++number) {
    lineage.Add({number}, GenerationKind::kInstalled, {number - 1}, V(number - 1, 2));
  }
  lineage.KeepNewest(3);
  CHECK(!lineage.Known({3}));
  CHECK(lineage.OnLine(V(6, 9), {6}));
  CHECK(lineage.OnLine(V(3, 2), {6}));
  CHECK(!lineage.OnLine(V(3, 3), {6}));  // of an abandoned future
  CHECK(!lineage.OnLine(V(2, 1), {6}));  // only a generation that is forgotten would show it
}

}  // namespace elastic::internal
