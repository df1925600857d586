#include <catch2/catch.hpp>

#include "rendezvous/store/journal.h"

// The contract of every journal. A new implementation adds one line to `kImplementations`.
namespace elastic::internal {

namespace {

struct Implementation {
  const char* name;
  std::unique_ptr<Journal> (*make)();
};
const Implementation kImplementations[] = {{"memory", [] { return MakeMemoryJournal(); }}};

JournalRecord RecordOf(ServerIncarnation server, uint32_t numbers_reserved) {
  JournalRecord record;
  record.server = server;
  record.numbers_reserved = GenerationNumber{numbers_reserved};
  return record;
}

}  // namespace

TEST_CASE("A new journal holds no record") {
  for (const Implementation& implementation : kImplementations) {
    INFO(implementation.name);
    std::unique_ptr<Journal> journal = implementation.make();
    StatusOr<std::optional<JournalRecord>> newest = journal->Newest();
    REQUIRE(newest.ok());
    CHECK(!newest->has_value());
  }
}

TEST_CASE("Every server incarnation is higher than all before it") {
  for (const Implementation& implementation : kImplementations) {
    INFO(implementation.name);
    std::unique_ptr<Journal> journal = implementation.make();
    ServerIncarnation before;
    for (int i = 0; i < 10; ++i) {
      StatusOr<ServerIncarnation> begun = journal->BeginIncarnation();
      REQUIRE(begun.ok());
      CHECK(*begun > before);
      before = *begun;
    }
  }
}

TEST_CASE("The newest record is the one written last, as a whole") {
  for (const Implementation& implementation : kImplementations) {
    INFO(implementation.name);
    std::unique_ptr<Journal> journal = implementation.make();
    const ServerIncarnation server = *journal->BeginIncarnation();
    JournalRecord first = RecordOf(server, 64);
    first.installed = Roster{};
    first.installed->entries.push_back({.rank = 0, .host = "a"});
    first.agents_reserved = AgentIncarnation{7};
    REQUIRE(journal->Write(first).ok());
    CHECK((*journal->Newest())->installed == first.installed);
    CHECK((*journal->Newest())->agents_reserved == AgentIncarnation{7});

    REQUIRE(journal->Write(RecordOf(server, 128)).ok());
    CHECK((*journal->Newest())->numbers_reserved == GenerationNumber{128});
    CHECK(!(*journal->Newest())->installed.has_value());
  }
}

TEST_CASE("A server is refused once a newer one has begun and its record stays as it was") {
  for (const Implementation& implementation : kImplementations) {
    INFO(implementation.name);
    std::unique_ptr<Journal> journal = implementation.make();
    const ServerIncarnation old_server = *journal->BeginIncarnation();
    REQUIRE(journal->Write(RecordOf(old_server, 64)).ok());
    const ServerIncarnation new_server = *journal->BeginIncarnation();

    CHECK(journal->Write(RecordOf(old_server, 128)).code() == StatusCode::kAborted);
    CHECK((*journal->Newest())->numbers_reserved == GenerationNumber{64});
    CHECK((*journal->Newest())->server == old_server);
    REQUIRE(journal->Write(RecordOf(new_server, 192)).ok());
    CHECK(journal->Write(RecordOf(old_server, 256)).code() == StatusCode::kAborted);
    CHECK((*journal->Newest())->numbers_reserved == GenerationNumber{192});
  }
}

TEST_CASE("A server that never began an incarnation cannot write") {
  for (const Implementation& implementation : kImplementations) {
    INFO(implementation.name);
    std::unique_ptr<Journal> journal = implementation.make();
    const ServerIncarnation server = *journal->BeginIncarnation();
    const Status refused = journal->Write(RecordOf(ServerIncarnation{server.value + 1}, 64));
    CHECK(refused.code() == StatusCode::kFailedPrecondition);
    CHECK(!journal->Newest()->has_value());
  }
}

TEST_CASE("A journal in memory begins above the incarnation that it is told") {
  std::unique_ptr<Journal> journal = MakeMemoryJournal(ServerIncarnation{41});
  CHECK(*journal->BeginIncarnation() == ServerIncarnation{42});
}

}  // namespace elastic::internal
