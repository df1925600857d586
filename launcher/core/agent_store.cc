#include "launcher/core/agent_store.h"

#include <algorithm>
#include <utility>

#include "rendezvous/base/hash.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

Status Differs(const StoreKey& key) {
  return InvalidArgumentError(StrCat(
      "key '", key.name, "' holds other bytes in generation ", ToString(key.generation.number),
      ": a value does not change once it is put, so use another key for each value"));
}

Status Full(const StoreKey& key) {
  return ResourceExhaustedError(
      StrCat("no room for key '", key.name, "': the keys and values of generation ",
             ToString(key.generation.number), " would be more than ", kStoreKeysMax, " or ",
             kStoreBytesMax, " bytes together; send what is larger through a collective"));
}

Status GenerationOver(const StoreKey& key) {
  return AbortedError(StrCat("generation ", ToString(key.generation.number),
                             " is over, and with it key '", key.name, "': call elastic_join"));
}

AgentStore::Answer MakeAnswer(WorkerIncarnation process, uint32_t request, const Status& status) {
  return {.process = process, .request = request, .code = status.code(), .bytes = status.message()};
}

}  // namespace

// The server counts what all hosts have; this only keeps a report within its limits.
Status AgentStore::RoomFor(const StoreKey& key, size_t bytes) const {
  size_t keys = 0;
  for (auto at = entries_.lower_bound({key.generation, ""});
       at != entries_.end() && at->first.generation == key.generation; ++at) {
    if (at->first == key) {
      continue;
    }
    ++keys;
    bytes += at->first.name.size() + (at->second.value ? at->second.value->size() : 0);
    for (const PutCall& put : at->second.puts) {
      bytes += put.value.size();
    }
  }
  return keys < kStoreKeysMax && bytes <= kStoreBytesMax ? OkStatus() : Full(key);
}

AgentStore::Answers AgentStore::Put(WorkerIncarnation process, uint32_t request, StorePut put) {
  if (const Status room = RoomFor(put.key, put.key.name.size() + put.value.size()); !room.ok()) {
    return {MakeAnswer(process, request, room)};
  }
  Answers answers;
  Entry& entry = entries_[put.key];
  const auto before = std::ranges::find_if(entry.puts, [&](const PutCall& call) {
    return call.process == process && call.value == put.value;
  });
  if (before != entry.puts.end()) {
    before->request = request;
    return answers;
  }
  entry.puts.push_back({process, request, std::move(put.value)});
  Settle(put.key, entry, answers);
  dirty_ = dirty_ || answers.empty();
  return answers;
}

AgentStore::Answers AgentStore::Get(WorkerIncarnation process, uint32_t request,
                                    const StoreKey& key) {
  if (const Status room = RoomFor(key, key.name.size()); !room.ok()) {
    return {MakeAnswer(process, request, room)};
  }
  Answers answers;
  Entry& entry = entries_[key];
  const bool asked = !entry.gets.empty();
  std::erase_if(entry.gets, [&](const GetCall& call) { return call.process == process; });
  entry.gets.push_back({process, request});
  Settle(key, entry, answers);
  dirty_ = dirty_ || (answers.empty() && !asked);
  return answers;
}

void AgentStore::ServerIsNew() {
  for (auto& [key, entry] : entries_) {
    entry.known = false;
    dirty_ = dirty_ || entry.own;
  }
}

AgentStore::Answers AgentStore::Take(const Directive& directive) {
  Answers answers;
  for (const StoreAnswer& answer : directive.put_answers) {
    TakeAnswer(answer, answers);
  }
  for (const StorePut& told : directive.values) {
    const auto found = entries_.find(told.key);
    if (found != entries_.end() && !found->second.value) {
      found->second.value = told.value;
      Settle(told.key, found->second, answers);
    }
  }
  return answers;
}

void AgentStore::TakeAnswer(const StoreAnswer& answer, Answers& answers) {
  const auto found = entries_.find(answer.key);
  if (found == entries_.end()) {
    return;
  }
  Entry& entry = found->second;
  if (entry.own && entry.value && HashText(*entry.value) == answer.digest) {
    // Told again to a new server. Other bytes can stand there only if the program has put both.
    entry.known = true;
    return;
  }
  if (entry.puts.empty() || HashText(entry.puts.front().value) != answer.digest) {
    return;  // of a call that is over
  }
  switch (answer.verdict) {
    case StoreVerdict::kStored:
      entry.value = entry.puts.front().value;
      entry.own = entry.known = true;
      Settle(answer.key, entry, answers);
      return;
    case StoreVerdict::kDiffers:
      EndFirstPut(answer.key, entry, Differs(answer.key), answers);
      return;
    case StoreVerdict::kFull: EndFirstPut(answer.key, entry, Full(answer.key), answers); return;
    case StoreVerdict::kOver:
      EndFirstPut(answer.key, entry, GenerationOver(answer.key), answers);
      return;
    case StoreVerdict::kUnspecified: return;
  }
}

void AgentStore::EndFirstPut(const StoreKey& key, Entry& entry, const Status& status,
                             Answers& answers) {
  const PutCall& put = entry.puts.front();
  answers.push_back(MakeAnswer(put.process, put.request, status));
  entry.puts.pop_front();
  dirty_ = true;
  if (entry.puts.empty() && entry.gets.empty() && !entry.value) {
    entries_.erase(key);
  }
}

// With the value known, every call that waits for this key is over.
void AgentStore::Settle(const StoreKey& key, Entry& entry, Answers& answers) {
  if (!entry.value) {
    return;
  }
  for (const PutCall& put : std::exchange(entry.puts, {})) {
    answers.push_back(MakeAnswer(put.process, put.request,
                                 put.value == *entry.value ? OkStatus() : Differs(key)));
  }
  for (const GetCall& get : std::exchange(entry.gets, {})) {
    answers.push_back({.process = get.process,
                       .request = get.request,
                       .code = StatusCode::kOk,
                       .bytes = *entry.value});
  }
}

AgentStore::Answers AgentStore::Drop(const Over& over) {
  Answers answers;
  std::erase_if(entries_, [&](const auto& item) {
    const auto& [key, entry] = item;
    if (!over(key.generation)) {
      return false;
    }
    for (const PutCall& put : entry.puts) {
      answers.push_back(MakeAnswer(put.process, put.request, GenerationOver(key)));
    }
    for (const GetCall& get : entry.gets) {
      answers.push_back(MakeAnswer(get.process, get.request, GenerationOver(key)));
    }
    return true;
  });
  return answers;
}

void AgentStore::FillReport(AgentReport& report) const {
  for (const auto& [key, entry] : entries_) {
    if (!entry.puts.empty()) {
      report.puts.push_back({key, entry.puts.front().value});
    } else if (entry.own && !entry.known) {
      report.puts.push_back({key, *entry.value});
    }
    if (!entry.gets.empty()) {
      report.wanted.push_back(key);
    }
  }
}

}  // namespace elastic::internal
