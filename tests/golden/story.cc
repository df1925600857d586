#include "tests/golden/story.h"

#include <algorithm>
#include <stdexcept>

namespace elastic::internal {

namespace {
// Errors of a script end only this command.
[[noreturn]] void Fail(const std::string& message) { throw std::runtime_error(message); }

// `1.3`, with F for fenced and C for committing behind it.
CommitWord ParseWord(const std::string& text) {
  const size_t dot = text.find('.');
  if (dot == std::string::npos) {
    Fail("a word is GENERATION.COMMITS: " + text);
  }
  CommitWord word;
  word.generation.value = static_cast<uint32_t>(std::stoul(text.substr(0, dot)));
  word.commits = static_cast<uint32_t>(std::stoul(text.substr(dot + 1)));
  word.fenced = text.find('F') != std::string::npos;
  word.committing = text.find('C') != std::string::npos;
  return word;
}

Held ParseHeld(const std::string& text) {
  const CommitWord word = ParseWord(text);
  return {.version = {word.generation, word.commits},
          .digest = (uint64_t{word.generation.value} << 32) + word.commits,
          .step = word.commits};
}

std::string ValueOf(const std::string& word, const std::string& key) {
  return word.starts_with(key + "=") ? word.substr(key.size() + 1) : std::string();
}
}  // namespace

Story::Story() = default;
Story::~Story() = default;

std::string Story::Run(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  out_.str("");
  try {
    Dispatch(words);
  } catch (const std::exception& error) {
    out_ << "error: " << error.what() << "\n";
  }
  return out_.str();
}

void Story::Dispatch(const Words& words) {
  const std::string& command = words.at(0);
  if (command == "job") {
    return Job(words);
  }
  if (!membership_) {
    Fail("the first command is job");
  }
  if (command == "time") {
    const auto duration = ParseDuration(words.at(1));
    return Pass(duration.ok() ? *duration : Duration{0});
  }
  if (command == "status") {
    return Status();
  }
  if (command == "resets") {
    return Resets(words.size() > 1);
  }
  if (command == "stop") {
    return Feed(
        StopRequested{words.at(1) == "immediate" ? StopMode::kImmediate : StopMode::kGraceful,
                      "signal", std::stoi(words.at(2))});
  }
  if (command == "beats") {
    return Beats(words);
  }
  if (command == "launcher") {
    words.at(1) == "gone" ? Feed(LauncherWent{}) : Feed(LauncherCame{});
    return;
  }
  if (command == "restart-server") {
    return Restart(words);
  }
  if (DispatchAgents(words) || DispatchWorkers(words)) {
    return;
  }
  Fail("unknown command " + command);
}

bool Story::DispatchAgents(const Words& words) {
  const std::string& command = words.at(0);
  if (command == "connect") {
    Connect(words.at(1), false, words.size() > 2 ? std::stoi(words[2]) : kSlotsPerHostMax);
  } else if (command == "reconnect") {
    Reconnect(words);
  } else if (command == "closes") {
    agents_.at(words.at(1)).closed.value = static_cast<uint32_t>(std::stoul(words.at(2)));
  } else if (command == "disconnect") {
    Feed(AgentDisconnected{agents_.at(words.at(1)).connection});
  } else if (command == "no-copies") {
    agents_.at(words.at(1)).serves_copies = false;
  } else if (command == "start-failed") {
    Feed(AgentStartFailed{words.at(1), "no such host"});
  } else if (command == "spawn-error") {
    agents_.at(words.at(1)).spawn_error = "cannot run ./missing: No such file or directory";
    Report(words.at(1));
  } else if (command == "report" || command == "follow") {
    for (size_t i = 1; i < words.size(); ++i) {
      command == "report" ? Report(words[i]) : Follow(words[i]);
    }
  } else {
    return false;
  }
  return true;
}

bool Story::DispatchWorkers(const Words& words) {
  const std::string& command = words.at(0);
  if (command == "start") {
    Start(words);
  } else if (command == "spawn") {
    Spawn(words.at(1), words.at(2));
  } else if (command == "commit") {
    Commit(words);
  } else if (command == "enter") {
    Enter(words);
  } else if (command == "cross") {
    Cross(words);
  } else if (actors_.contains(command)) {
    Change(actors_.at(command), words);
  } else {
    return false;
  }
  return true;
}

void Story::Job(const Words& words) {
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (const std::string np = ValueOf(word, "np"); !np.empty()) {
      spec_.np = spec_.max_np = spec_.min_np = std::stoi(np);
    } else if (const std::string min_np = ValueOf(word, "min-np"); !min_np.empty()) {
      spec_.min_np = std::stoi(min_np);
    } else if (const std::string max_np = ValueOf(word, "max-np"); !max_np.empty()) {
      spec_.max_np = std::stoi(max_np);
    } else if (const std::string start = ValueOf(word, "start-timeout"); !start.empty()) {
      spec_.start_timeout = ParseDuration(start).value();
    } else if (const std::string limit = ValueOf(word, "no-progress-limit"); !limit.empty()) {
      spec_.no_progress_limit = std::stoi(limit);
    } else if (word == "allow-restart-from-zero") {
      spec_.allow_restart_from_zero = true;
    } else if (const std::string hosts = ValueOf(word, "hosts"); !hosts.empty()) {
      std::istringstream stream(hosts);
      for (std::string host; std::getline(stream, host, ',');) {
        const size_t colon = host.find(':');
        spec_.hosts.push_back({host.substr(0, colon), std::stoi(host.substr(colon + 1))});
      }
    } else {
      Fail("unknown setting " + word);
    }
  }
  spec_.job_id = "golden";
  now_ = FromNanoseconds(1'000'000'000'000);
  membership_ = std::make_unique<Membership>(spec_, ServerIncarnation{++server_}, record_, now_);
}

void Story::Connect(const std::string& host, bool again, int32_t slots) {
  Agent& agent = agents_[host];
  const AgentIncarnation previous = again ? agent.incarnation : AgentIncarnation{};
  const Agent before = agent;
  const bool replaces = again ? before.replaces : before.incarnation.value != 0;
  agent = Agent{};
  if (again) {
    agent = before;
  }
  agent.replaces = replaces;
  agent.connection = ConnectionId{++connections_};
  if (!again) {
    for (auto& [name, actor] : actors_) {
      actor.forgotten = actor.forgotten || actor.host == host;
    }
  }
  const ServerIncarnation seen = std::exchange(agent.server, {server_});
  Feed(AgentConnected{agent.connection, host, slots, previous, seen, replaces});
}

// reconnect a [as 7]: with its incarnation, or with one that it was never given.
void Story::Reconnect(const Words& words) {
  if (words.size() > 3) {
    agents_[words.at(1)].incarnation.value = static_cast<uint32_t>(std::stoul(words.at(3)));
  }
  Connect(words.at(1), true);
}

void Story::Spawn(const std::string& name, const std::string& place) {
  const size_t colon = place.find(':');
  Actor actor;
  actor.host = place.substr(0, colon);
  Agent& agent = agents_.at(actor.host);
  actor.report.incarnation = {agent.incarnation, ++agent.counter};
  actor.report.slot = std::stoi(place.substr(colon + 1));
  actor.report.life = WorkerLife::kStarting;
  names_[actor.report.incarnation] = name;
  actors_[name] = actor;
}

void Story::Change(Actor& actor, const Words& words) {
  WorkerReport& report = actor.report;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "waiting") {
      report.life = WorkerLife::kWaiting;
      report.joined = true;
      report.data = {"10.0.0.1", static_cast<uint16_t>(4000 + report.incarnation.counter)};
    } else if (word == "foreign") {
      ++report.generation.server.value;
    } else if (word == "entered") {
      report.entered = true;
    } else if (const std::string text = ValueOf(word, "word"); !text.empty()) {
      report.word = ParseWord(text);
      report.generation = {};  // as if the page were read between its two writes
      report.life = WorkerLife::kMember;
    } else if (const std::string held = ValueOf(word, "held"); !held.empty()) {
      report.held = ParseHeld(held);
    } else if (const std::string version = ValueOf(word, "finished"); !version.empty()) {
      report.finished = ParseHeld(version);
    } else if (word == "puts" || word == "gets") {
      UseStore(actor, word, words.at(++i));
    } else if (word == "errs") {
      report.program_error = "ranks make different calls";
    } else if (word == "dies") {
      Die(actor, i + 1 < words.size() ? words[++i] : "");
    } else if (word == "accuses") {
      report.accusations.push_back({installed_->id, actors_.at(words.at(++i)).report.incarnation});
    } else {
      Fail("unknown change " + word);
    }
  }
}

void Story::Die(Actor& actor, const std::string& how) {
  actor.report.life = WorkerLife::kDead;
  actor.report.cause = DeathCause::kExited;
  if (how.starts_with("signal:")) {
    actor.report.exit = ExitStatus{true, std::stoi(how.substr(7))};
  } else if (how.starts_with("exit:")) {
    actor.report.exit = ExitStatus{false, std::stoi(how.substr(5))};
  }
}

std::vector<Story::Actor*> Story::Chosen(const Words& words, size_t from) {
  std::vector<Actor*> chosen;
  for (size_t i = from; i < words.size(); ++i) {
    chosen.push_back(&actors_.at(words[i]));
  }
  for (auto& [name, actor] : actors_) {
    const bool member = installed_ && installed_->Find(actor.report.incarnation) != nullptr;
    if (words.size() <= from && member && actor.report.life != WorkerLife::kDead) {
      chosen.push_back(&actor);
    }
  }
  return chosen;
}

void Story::Commit(const Words& words) {
  for (Actor* actor : Chosen(words, 2)) {
    WorkerReport& report = actor->report;
    report.word.commits = static_cast<uint32_t>(std::stoul(words.at(1)));
    report.held = ParseHeld(StrCat(report.word.generation.value, ".", report.word.commits));
  }
}

void Story::Enter(const Words& words) {
  for (Actor* actor : Chosen(words, 1)) {
    if (actor->report.word.generation == installed_->id.number) {
      actor->report.entered = true;
      if (installed_->resume.valid()) {
        actor->report.held = installed_->resume;
      }
    }
  }
}

void Story::Cross(const Words& words) {
  for (Actor* actor : Chosen(words, 1)) {
    actor->report.entered = actor->report.held.valid();
    actor->report.word = {.generation = prepared_->id.number};
    actor->report.generation = prepared_->id;
    actor->report.life = WorkerLife::kMember;
  }
}

// Every deadline on the way is met exactly, as a punctual driver does.
void Story::Pass(Duration duration) {
  const Instant end = now_ + duration;
  for (auto next = membership_->NextDeadline(); next && *next <= end;
       next = membership_->NextDeadline()) {
    now_ = std::max(now_, *next);
    Feed(TimePassed{});
  }
  now_ = end;
}

// beats 4s a b! : for so long these hosts send heartbeats; with `!` what the server says is lost.
void Story::Beats(const Words& words) {
  const auto duration = ParseDuration(words.at(1));
  const Instant end = now_ + (duration.ok() ? *duration : Duration{0});
  while (now_ < end) {
    Pass(std::min<Duration>(kAgentBeatInterval, end - now_));
    for (size_t i = 2; i < words.size(); ++i) {
      const bool deaf = words[i].back() == '!';
      const std::string host = deaf ? words[i].substr(0, words[i].size() - 1) : words[i];
      deaf ? Report(host) : Follow(host);
    }
  }
}

// restart-server              with the newest record
// restart-server forgetting   the journal was in memory
// restart-server older         its predecessor, which was thought to be dead, is met again
// restart-server issued 9 8   the record says that so many generations and agents were numbered
// restart-server prepared A B the record names a prepared successor of these, sent before the crash
void Story::Restart(const Words& words) {
  if (words.size() > 1 && words[1] == "forgetting") {
    record_.reset();
  } else if (words.size() > 1 && words[1] == "older") {
    server_ -= 2;
  } else if (words.size() > 3 && words[1] == "issued") {
    record_->numbers_reserved.value = static_cast<uint32_t>(std::stoul(words[2]));
    record_->agents_reserved.value = static_cast<uint32_t>(std::stoul(words[3]));
  } else if (words.size() > 2 && words[1] == "prepared") {
    Roster roster{.kind = GenerationKind::kPrepared, .parent = record_->installed->id.number};
    for (size_t i = 2; i < words.size(); ++i) {
      RosterEntry entry = *record_->installed->Find(actors_.at(words[i]).report.incarnation);
      entry.previous_rank = std::exchange(entry.rank, static_cast<int32_t>(i) - 2);
      roster.entries.push_back(entry);
    }
    ++record_->numbers_reserved.value;
    roster.id = {record_->server, record_->numbers_reserved, RosterDigest(roster)};
    record_->prepared.push_back(roster);
    prepared_ = roster;
  }
  for (auto& [host, agent] : agents_) {
    agent.shown = {};
    agent.acked = 0;
  }
  membership_ = std::make_unique<Membership>(spec_, ServerIncarnation{++server_}, record_, now_);
}

// start A@a:0 B@b:0: agents register, workers become ready, the first generation is entered by all.
void Story::Start(const Words& words) {
  quiet_ = true;
  for (const HostSpec& host : spec_.hosts) {
    Connect(host.name, false);
  }
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t at = words[i].find('@');
    Spawn(words[i].substr(0, at), words[i].substr(at + 1));
    Change(actors_.at(words[i].substr(0, at)), {"", "waiting"});
  }
  for (const HostSpec& host : spec_.hosts) {
    Report(host.name);
  }
  for (const HostSpec& host : spec_.hosts) {
    Follow(host.name);
  }
  Enter({"enter"});
  for (const HostSpec& host : spec_.hosts) {
    Report(host.name);
    Follow(host.name);
  }
  quiet_ = false;
  Status();
}

void Story::Feed(const Event& event) {
  // A step later than the one before, so that nothing is decided by equal times.
  now_ += std::chrono::microseconds(100);
  for (const Action& action : membership_->Step(now_, event)) {
    Show(action);
  }
  for (const std::string& broken : membership_->BrokenInvariants()) {
    out_ << "INVARIANT " << broken << "\n";
  }
}

}  // namespace elastic::internal
