// Put and get within a generation: what agents report is kept as long as the generation may still
// be computed in, and goes to every host that asks for it.
#include <algorithm>

#include "rendezvous/base/hash.h"
#include "rendezvous/core/membership_state.h"

namespace elastic::internal {

// The parent of a generation that was entered at a boundary counts too: ranks that have not reached
// the boundary yet still compute there.
bool Membership::State::StoreOpen(const GenerationId& generation) const {
  if (generation.number <= closed) {
    return false;
  }
  return (installed && installed->id == generation) || (parent && parent->id == generation) ||
         std::ranges::any_of(prepared, [&](const Roster& next) { return next.id == generation; });
}

void Membership::State::TakeStore(Host& host, const AgentReport& report) {
  host.put_answers.clear();
  for (const StorePut& put : report.puts) {
    const GenerationId& generation = put.key.generation;
    StoreVerdict verdict = StoreVerdict::kOver;
    if (StoreOpen(generation)) {
      verdict = stores[generation].Put(put.key.name, put.value);
      if (verdict == StoreVerdict::kStored) {
        PublishValue(put.key);
      }
    } else if (generation.number > closed &&
               (!installed || generation.number > installed->id.number)) {
      continue;  // this server's predecessor formed it; told again when it is known here
    }
    host.put_answers.push_back({put.key, HashText(put.value), verdict});
  }
  host.wanted = report.wanted;
}

void Membership::State::PublishValue(const StoreKey& key) {
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (std::ranges::find(hosts[i].wanted, key) != hosts[i].wanted.end()) {
      publish_hosts.insert(static_cast<int>(i));
    }
  }
}

void Membership::State::FillStore(const Host& host, Directive& directive) const {
  directive.put_answers = host.put_answers;
  for (const StoreKey& key : host.wanted) {
    const auto store = stores.find(key.generation);
    const std::string* value = store != stores.end() ? store->second.Find(key.name) : nullptr;
    if (value != nullptr) {
      directive.values.push_back({key, *value});
    }
  }
}

void Membership::State::ForgetOldStores() {
  std::erase_if(stores, [this](const auto& entry) { return !StoreOpen(entry.first); });
}

}  // namespace elastic::internal
