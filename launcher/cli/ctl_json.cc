#include "launcher/cli/ctl_json.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/cli/ctl_names.h"

namespace elastic::internal {

namespace {

using Json = nlohmann::ordered_json;

std::string Hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

Json JsonOf(const Held& held) {
  if (!held.valid()) {
    return nullptr;
  }
  return {{"generation", held.version.generation.value},
          {"commits", held.version.commits},
          {"step", held.step},
          {"digest", Hex(held.digest)}};
}

Json JsonOf(const Wait& wait, Instant now) {
  return {{"reason", NameOf(wait.reason)},
          {"have", wait.have},
          {"want", wait.want},
          {"who", wait.who},
          {"remaining_ms", wait.until ? Json(ToMilliseconds(*wait.until - now)) : Json(nullptr)}};
}

Json JsonOf(const HostView& host) {
  return {{"name", host.name},       {"registered", host.registered},
          {"counted", host.counted}, {"agent", host.agent.value},
          {"slots", host.slots},     {"heartbeat_age_ms", ToMilliseconds(host.heartbeat_age)}};
}

Json JsonOf(const WorkerView& worker, Duration beat_age) {
  const WorkerReport& report = worker.report;
  Json json = {{"rank", worker.rank},
               {"host", worker.host},
               {"slot", report.slot},
               {"pid", report.pid},
               {"incarnation", ToString(report.incarnation)},
               {"life", NameOf(report.life)},
               {"phase", NameOf(report.phase)},
               {"heartbeat_age_ms", ToMilliseconds(beat_age)},
               {"generation", report.word.generation.value},
               {"entered", report.entered},
               {"finished", report.finished.has_value()},
               {"held", JsonOf(report.held)}};
  if (report.life == WorkerLife::kDead) {
    json["cause"] = NameOf(report.cause);
  }
  if (report.exit.has_value()) {
    json["exit"] = ToString(*report.exit);
  }
  return json;
}

Json JsonOf(const ResetView& reset) {
  return {{"from", reset.from.value},
          {"to", reset.to.value},
          {"cause", reset.cause},
          {"size_before", reset.size_before},
          {"size_after", reset.size_after},
          {"resumed", JsonOf(reset.resumed)},
          {"answers_ms", ToMilliseconds(reset.answers)},
          {"form_ms", ToMilliseconds(reset.form)},
          {"enter_ms", ToMilliseconds(reset.enter)},
          {"complete", reset.complete}};
}

}  // namespace

std::string StatusJson(const JobView& view, Instant now) {
  Json json = {{"job_id", view.job_id},
               {"state", NameOf(view.state)},
               {"wait_text", view.wait_text},
               {"wait", JsonOf(view.wait, now)},
               {"generation", view.generation.number.value},
               {"server_incarnation", view.generation.server.value},
               {"roster_digest", Hex(view.generation.roster_digest)},
               {"size", view.size},
               {"np", view.np},
               {"min_np", view.min_np},
               {"max_np", view.max_np},
               {"newest", JsonOf(view.newest)},
               {"hosts", Json::array()},
               {"workers", Json::array()},
               {"resets", Json::array()},
               {"resets_total", view.resets_total}};
  for (const HostView& host : view.hosts) {
    json["hosts"].push_back(JsonOf(host));
  }
  for (const WorkerView& worker : view.workers) {
    json["workers"].push_back(JsonOf(worker, BeatAge(view, worker)));
  }
  for (const ResetView& reset : view.resets) {
    json["resets"].push_back(JsonOf(reset));
  }
  // Names and causes come from outside and may be no UTF-8.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace elastic::internal
