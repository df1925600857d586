#include "launcher/cli/ctl_json.h"

#include <cstdio>

#include "launcher/cli/ctl_json_writer.h"
#include "launcher/cli/ctl_names.h"

namespace elastic::internal {

namespace {

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

void WriteHeld(JsonWriter& json, std::string_view key, const Held& held) {
  if (!held.valid()) {
    json.Null(key);
    return;
  }
  json.BeginObject(key);
  json.Number("generation", held.version.generation.value);
  json.Number("commits", held.version.commits);
  json.Number("step", static_cast<int64_t>(held.step));
  json.Text("digest", Hex(held.digest));
  json.EndObject();
}

void WriteWait(JsonWriter& json, const JobView& view, Instant now) {
  json.Text("wait_text", view.wait_text);
  json.BeginObject("wait");
  json.Text("reason", NameOf(view.wait.reason));
  json.Number("have", view.wait.have);
  json.Number("want", view.wait.want);
  json.BeginArray("who");
  for (const std::string& who : view.wait.who) {
    json.Text("", who);
  }
  json.EndArray();
  if (view.wait.until.has_value()) {
    json.Milliseconds("remaining_ms", *view.wait.until - now);
  } else {
    json.Null("remaining_ms");
  }
  json.EndObject();
}

void WriteHost(JsonWriter& json, const HostView& host) {
  json.BeginObject("");
  json.Text("name", host.name);
  json.Flag("registered", host.registered);
  json.Flag("counted", host.counted);
  json.Number("agent", host.agent.value);
  json.Number("slots", host.slots);
  json.Milliseconds("heartbeat_age_ms", host.heartbeat_age);
  json.EndObject();
}

void WriteWorker(JsonWriter& json, const JobView& view, const WorkerView& worker) {
  const WorkerReport& report = worker.report;
  json.BeginObject("");
  json.Number("rank", worker.rank);
  json.Text("host", worker.host);
  json.Number("slot", report.slot);
  json.Number("pid", report.pid);
  json.Text("incarnation", ToString(report.incarnation));
  json.Text("life", NameOf(report.life));
  json.Text("phase", NameOf(report.phase));
  json.Milliseconds("heartbeat_age_ms", BeatAge(view, worker));
  json.Number("generation", report.word.generation.value);
  json.Flag("entered", report.entered);
  json.Flag("finished", report.finished.has_value());
  WriteHeld(json, "held", report.held);
  if (report.life == WorkerLife::kDead) {
    json.Text("cause", NameOf(report.cause));
  }
  if (report.exit.has_value()) {
    json.Text("exit", ToString(*report.exit));
  }
  json.EndObject();
}

void WriteReset(JsonWriter& json, const ResetView& reset) {
  json.BeginObject("");
  json.Number("from", reset.from.value);
  json.Number("to", reset.to.value);
  json.Text("cause", reset.cause);
  json.Number("size_before", reset.size_before);
  json.Number("size_after", reset.size_after);
  WriteHeld(json, "resumed", reset.resumed);
  json.Milliseconds("answers_ms", reset.answers);
  json.Milliseconds("form_ms", reset.form);
  json.Milliseconds("enter_ms", reset.enter);
  json.Flag("complete", reset.complete);
  json.EndObject();
}

}  // namespace

std::string StatusJson(const JobView& view, Instant now) {
  JsonWriter json;
  json.BeginObject("");
  json.Text("job_id", view.job_id);
  json.Text("state", NameOf(view.state));
  WriteWait(json, view, now);
  json.Number("generation", view.generation.number.value);
  json.Number("server_incarnation", static_cast<int64_t>(view.generation.server.value));
  json.Text("roster_digest", Hex(view.generation.roster_digest));
  json.Number("size", view.size);
  json.Number("np", view.np);
  json.Number("min_np", view.min_np);
  json.Number("max_np", view.max_np);
  WriteHeld(json, "newest", view.newest);
  json.BeginArray("hosts");
  for (const HostView& host : view.hosts) {
    WriteHost(json, host);
  }
  json.EndArray();
  json.BeginArray("workers");
  for (const WorkerView& worker : view.workers) {
    WriteWorker(json, view, worker);
  }
  json.EndArray();
  json.BeginArray("resets");
  for (const ResetView& reset : view.resets) {
    WriteReset(json, reset);
  }
  json.EndArray();
  json.Number("resets_total", view.resets_total);
  json.EndObject();
  return json.Take();
}

}  // namespace elastic::internal
