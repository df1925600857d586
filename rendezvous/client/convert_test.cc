#include <catch2/catch.hpp>
#include <cstdlib>

#include "rendezvous/base/rng.h"
#include "rendezvous/client/convert.h"
#include "rendezvous/client/convert_fields.h"

namespace elastic::internal {

namespace {

constexpr int kRounds = 300;

// Random but valid structs; every field takes its default and other values.
class Maker {
 public:
  explicit Maker(uint64_t seed) : rng_(seed) {}

  bool Flag() { return rng_.Chance(1, 2); }
  template <class Enum>
  Enum Pick(Enum first, Enum last) {
    const auto span = static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1;
    return static_cast<Enum>(static_cast<uint64_t>(first) + rng_.Below(span));
  }
  uint32_t U32() { return static_cast<uint32_t>(rng_.Next()); }
  std::string Text() { return "text-" + std::to_string(rng_.Below(100)); }
  Duration Span() { return Duration(static_cast<int64_t>(rng_.Next()) / 1024); }
  template <class F>
  auto Some(F make) -> std::vector<decltype(make())> {
    std::vector<decltype(make())> items(rng_.Below(4));
    for (auto& item : items) {
      item = make();
    }
    return items;
  }
  template <class F>
  auto Perhaps(F make) -> std::optional<decltype(make())> {
    return Flag() ? std::optional(make()) : std::nullopt;
  }

  GenerationId Generation() {
    return Flag() ? GenerationId{} : GenerationId{{rng_.Next()}, {U32()}, rng_.Next()};
  }
  WorkerIncarnation Worker() { return {{U32()}, U32()}; }
  Held State() { return Flag() ? Held{} : Held{{{U32()}, U32() >> 2}, rng_.Next(), rng_.Next()}; }
  Endpoint Address() {
    return Flag() ? Endpoint{} : Endpoint{"127.0.0." + std::to_string(U32() % 9), 4000};
  }
  Mark Loss() { return {{U32()}, Worker()}; }
  FinishRecord Finish() { return {Generation(), State()}; }
  int32_t Slot() { return static_cast<int32_t>(rng_.Below(kSlotsPerHostMax)); }

  RosterEntry Entry() {
    return {.role = Pick(Role::kWorker, Role::kCopy),
            .incarnation = Worker(),
            .rank = static_cast<int32_t>(rng_.Below(kMembersMax)) - 1,
            .previous_rank = static_cast<int32_t>(rng_.Below(kMembersMax)) - 1,
            .host = Text(),
            .slot = Slot(),
            .data = Address(),
            .holds_resume = Flag()};
  }
  Roster Membership() {
    return {.id = {{rng_.Next()}, {U32()}, rng_.Next()},
            .kind = Pick(GenerationKind::kInstalled, GenerationKind::kPrepared),
            .parent = {U32()},
            .resume = State(),
            .entries = Some([&] { return Entry(); })};
  }
  WorkerReport Process() {
    return {.incarnation = Worker(),
            .slot = Slot(),
            .pid = static_cast<int64_t>(rng_.Next()),
            .life = Pick(WorkerLife::kStarting, WorkerLife::kDead),
            .word = CommitWord::Unpack(rng_.Next()),
            .generation = Generation(),
            .held = State(),
            .entered = Flag(),
            .joined = Flag(),
            .finished = Perhaps([&] { return State(); }),
            .data = Address(),
            .phase = Pick(Phase::kUnspecified, Phase::kFinished),
            .beat_age = Span(),
            .accusations = Some([&] {
              return Accusation{Generation(), Worker()};
            }),
            .cause = Pick(DeathCause::kUnspecified, DeathCause::kOfferedAgain),
            .exit = Perhaps([&] {
              return ExitStatus{Flag(), static_cast<int32_t>(U32())};
            }),
            .released = Flag(),
            .program_error = Perhaps([&] { return Text(); })};
  }
  StoreKey Key() { return {Generation(), "k" + Text()}; }
  StorePut Put() { return {Key(), Text()}; }
  StoreAnswer Answer() {
    return {Key(), rng_.Next(), Pick(StoreVerdict::kStored, StoreVerdict::kOver)};
  }
  AgentReport Report() {
    return {.host = Text(),
            .agent = {U32()},
            .sequence = rng_.Next(),
            .acked_directive = rng_.Next(),
            .installed = Generation(),
            .prepared = Generation(),
            .closed = {U32()},
            .marks = Some([&] { return Loss(); }),
            .copies = Address(),
            .workers = Some([&] { return Process(); }),
            .spawn_error = Perhaps([&] { return Text(); }),
            .server = {rng_.Next()},
            .memory = Perhaps([&] { return Remembered(); }),
            .puts = Some([&] { return Put(); }),
            .wanted = Some([&] { return Key(); })};
  }
  Memory Remembered() {
    return {.rosters = Some([&] { return Membership(); }),
            .finished = Perhaps([&] { return Finish(); }),
            .stop = Pick(StopMode::kNone, StopMode::kImmediate),
            .stop_reason = Text(),
            .stop_exit_code = static_cast<int32_t>(U32()),
            .told_all = rng_.Chance(1, 2)};
  }
  Directive Order() {
    return {.server = {rng_.Next()},
            .agent = {U32()},
            .sequence = rng_.Next(),
            .acked_report = rng_.Next(),
            .installed = Perhaps([&] { return Membership(); }),
            .prepared = Perhaps([&] { return Membership(); }),
            .closed = {U32()},
            .marks = Some([&] { return Loss(); }),
            .slots = Some([&] { return Slot(); }),
            .spawn_allowed = Flag(),
            .remove = Some([&] { return Worker(); }),
            .offer_again = Some([&] { return Worker(); }),
            .forget = Some([&] { return Worker(); }),
            .finished = Perhaps([&] { return Finish(); }),
            .stop = Pick(StopMode::kNone, StopMode::kImmediate),
            .stop_reason = Text(),
            .stop_exit_code = static_cast<int32_t>(U32()),
            .relearning = rng_.Chance(1, 2),
            .put_answers = Some([&] { return Answer(); }),
            .values = Some([&] { return Put(); })};
  }
  JobView Picture(Instant now) {
    JobView view;
    view.job_id = Text();
    view.state = Pick(JobState::kStarting, JobState::kFailed);
    view.wait = {.reason = Pick(WaitReason::kNone, WaitReason::kMemory),
                 .have = static_cast<int>(rng_.Below(9)),
                 .want = static_cast<int>(rng_.Below(9)),
                 .who = Some([&] { return Text(); }),
                 .until = Perhaps([&] { return now + Span(); })};
    view.wait_text = Text();
    view.generation = Generation();
    view.size = static_cast<int>(rng_.Below(9));
    view.np = static_cast<int>(rng_.Below(9));
    view.min_np = static_cast<int>(rng_.Below(9));
    view.max_np = static_cast<int>(rng_.Below(9));
    view.newest = State();
    view.hosts = Some([&] { return HostView{Text(), Flag(), Flag(), {U32()}, Slot(), Span()}; });
    view.workers = Some([&] { return WorkerView{Slot(), Text(), Process()}; });
    view.resets = Some([&] {
      return ResetView{{U32()}, {U32()}, Text(), Slot(), Slot(),
                       State(), Span(),  Span(), Span(), Flag()};
    });
    view.resets_total = Slot();
    return view;
  }

 private:
  Rng rng_;
};

// As on the wire, so that what protobuf itself drops or refuses is seen too.
template <class Proto>
Proto ThroughBytes(const Proto& proto) {
  Proto parsed;
  REQUIRE(parsed.ParseFromString(proto.SerializeAsString()));
  return parsed;
}

uint64_t Seed() {
  const char* given = std::getenv("ELASTIC_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : Catch::rngSeed();
}

}  // namespace

TEST_CASE("A report survives the wire unchanged") {
  const uint64_t seed = Seed();
  INFO("seed " << seed);
  Maker maker(seed);
  for (int i = 0; i < kRounds; ++i) {
    const AgentReport report = maker.Report();
    const StatusOr<AgentReport> back = FromProto(ThroughBytes(ToProto(report)));
    REQUIRE(back.ok());
    REQUIRE(*back == report);
  }
}

TEST_CASE("A directive survives the wire unchanged whether its rosters are new or known") {
  const uint64_t seed = Seed();
  INFO("seed " << seed);
  Maker maker(seed);
  KnownRosters known;
  for (int i = 0; i < kRounds; ++i) {
    Directive directive = maker.Order();
    if (maker.Flag()) {
      directive.installed = known.prepared;
    }
    if (maker.Flag()) {
      directive.prepared = known.installed;
    }
    const v1::Directive proto = ThroughBytes(ToProto(directive, known));
    for (const auto& [roster, reference] : {std::pair(directive.installed, proto.installed()),
                                            std::pair(directive.prepared, proto.prepared())}) {
      if (roster.has_value()) {
        REQUIRE(reference.has_roster() == (known.Find(roster->id) == nullptr));
      }
    }
    const StatusOr<Directive> back = FromProto(proto, known);
    REQUIRE(back.ok());
    REQUIRE(*back == directive);
    known = {directive.installed, directive.prepared};
  }
}

TEST_CASE("A picture of the job survives the wire with the time that is left") {
  const uint64_t seed = Seed();
  INFO("seed " << seed);
  Maker maker(seed);
  const Instant now = FromNanoseconds(int64_t{1} << 55);
  for (int i = 0; i < kRounds; ++i) {
    const JobView view = maker.Picture(now);
    const v1::JobStatus proto = ThroughBytes(ToProto(view, now));
    const StatusOr<JobView> back = FromProto(proto, now);
    REQUIRE(back.ok());
    REQUIRE(ToProto(*back, now).SerializeAsString() == proto.SerializeAsString());
    REQUIRE(back->wait.until == view.wait.until);
    REQUIRE(back->state == view.state);
    REQUIRE(back->wait.reason == view.wait.reason);
    REQUIRE(back->workers.size() == view.workers.size());
    for (size_t w = 0; w < view.workers.size(); ++w) {
      REQUIRE(back->workers[w].report == view.workers[w].report);
      REQUIRE(back->workers[w].rank == view.workers[w].rank);
    }
    REQUIRE(back->hosts.size() == view.hosts.size());
    for (size_t h = 0; h < view.hosts.size(); ++h) {
      REQUIRE(back->hosts[h].heartbeat_age == view.hosts[h].heartbeat_age);
      REQUIRE(back->hosts[h].counted == view.hosts[h].counted);
    }
  }
}

TEST_CASE("A job survives the wire unchanged") {
  JobSpec job{.job_id = "run-1",
              .np = 3,
              .min_np = 2,
              .max_np = 5,
              .hosts = {{"a", 2}, {"b", 3}},
              .heartbeat_timeout = std::chrono::milliseconds(1500),
              .start_timeout = std::chrono::seconds(2),
              .elastic_timeout = std::chrono::seconds(3),
              .entry_timeout = std::chrono::seconds(4),
              .orphan_limit = std::chrono::minutes(10),
              .grace_period = std::chrono::seconds(5),
              .no_progress_limit = 7,
              .allow_restart_from_zero = true};
  CHECK(FromProto(ToProto(job)) == job);
  job.hosts.front().slots = 0;
  CHECK(FromProto(ToProto(job)).status().code() == StatusCode::kInvalidArgument);
  job.hosts.clear();
  CHECK(FromProto(ToProto(job)).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Enum values that this version does not know are refused and named") {
  Maker maker(1);
  v1::WorkerReport worker = ToProto(maker.Process());
  SECTION("a life of the future") { worker.set_life(static_cast<v1::WorkerLife>(99)); }
  SECTION("no life at all") { worker.clear_life(); }
  SECTION("a phase of the future") { worker.set_phase(static_cast<v1::Phase>(99)); }
  SECTION("a cause of the future") { worker.set_cause(static_cast<v1::DeathCause>(99)); }
  const StatusOr<WorkerReport> back = FromProto(ThroughBytes(worker));
  REQUIRE(!back.ok());
  CHECK(back.status().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(back.status().message(), Catch::Contains("worker."));
}

TEST_CASE("Numbers out of range are refused with the range") {
  Maker maker(2);
  v1::AgentReport report = ToProto(maker.Report());
  v1::WorkerReport* worker = report.add_workers();
  *worker = ToProto(maker.Process());
  SECTION("slot") { worker->set_slot(kSlotsPerHostMax); }
  SECTION("negative slot") { worker->set_slot(-1); }
  SECTION("port") { worker->mutable_data()->set_port(65536); }
  SECTION("commits") { worker->mutable_word()->set_commits(1u << 30); }
  SECTION("nanoseconds") { worker->mutable_beat_age()->set_nanos(1'000'000'000); }
  SECTION("seconds") { worker->mutable_beat_age()->set_seconds(int64_t{1} << 40); }
  const StatusOr<AgentReport> back = FromProto(ThroughBytes(report));
  REQUIRE(!back.ok());
  CHECK(back.status().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(back.status().message(), Catch::Contains("allowed are"));
}

TEST_CASE("A host name that is empty or too long is refused") {
  v1::AgentReport report = ToProto(Maker(3).Report());
  SECTION("empty") { report.set_host(""); }
  SECTION("too long") { report.set_host(std::string(kHostNameBytesMax + 1, 'h')); }
  CHECK(FromProto(report).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("A roster that was never sent on the stream is refused") {
  Maker maker(4);
  Directive directive = maker.Order();
  directive.installed = maker.Membership();
  const v1::Directive proto = ToProto(directive, {.installed = directive.installed});
  CHECK(FromProto(proto, {}).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("A roster under the name of another is refused") {
  Maker maker(5);
  Directive directive = maker.Order();
  directive.installed = maker.Membership();
  v1::Directive proto = ToProto(directive, {});
  proto.mutable_installed()->mutable_id()->set_number(directive.installed->id.number.value + 1);
  CHECK(FromProto(proto, {}).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("Bytes that are no UTF-8 become question marks and the rest of the text stays") {
  CHECK(Utf8("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x8E\x89") ==
        "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x8E\x89");
  CHECK(Utf8("a\xFF"
             "b") == "a?b");
  CHECK(Utf8("a\xC3") == "a?");
  CHECK(Utf8("\xC0\x80") == "??");            // overlong
  CHECK(Utf8("\xED\xA0\x80") == "???");       // surrogate
  CHECK(Utf8("\xF4\x90\x80\x80") == "????");  // beyond Unicode
  CHECK(Utf8("").empty());
  Maker maker(6);
  AgentReport report = maker.Report();
  report.spawn_error = "cannot run \xFF";
  CHECK(FromProto(ThroughBytes(ToProto(report)))->spawn_error == "cannot run ?");
}

}  // namespace elastic::internal
