// Put and get of the workers (agent_store.h): whose calls are refused at once, and when what a
// generation has left is forgotten.
#include <algorithm>

#include "launcher/core/agent_state.h"

namespace elastic::internal {

// A worker's own word says which generation it is in. One that was stopped, or has not noticed the
// loss yet, speaks for a generation that is over here.
Status AgentCore::State::MayUseStore(const AgentWorker& worker, const StoreKey& key) const {
  const PageReading& reading = worker.reading;
  if (worker.lost || reading.generation != key.generation || reading.word.fenced ||
      Closed(key.generation.number)) {
    return AbortedError("generation " + ToString(key.generation.number) +
                        " is over, and with it key '" + key.name + "': call elastic_join");
  }
  return OkStatus();
}

void AgentCore::State::On(const agent_event::PutCame& event) {
  const AgentWorker* worker = Of(event.process);
  if (worker == nullptr) {
    return;
  }
  if (const Status may = MayUseStore(*worker, event.put.key); !may.ok()) {
    Emit(agent_action::AnswerStore{{event.process, event.request, may.code(), may.message()}});
    return;
  }
  AnswerStore(store.Put(event.process, event.request, event.put));
}

void AgentCore::State::On(const agent_event::GetCame& event) {
  const AgentWorker* worker = Of(event.process);
  if (worker == nullptr) {
    return;
  }
  if (const Status may = MayUseStore(*worker, event.key); !may.ok()) {
    Emit(agent_action::AnswerStore{{event.process, event.request, may.code(), may.message()}});
    return;
  }
  AnswerStore(store.Get(event.process, event.request, event.key));
}

void AgentCore::State::AnswerStore(AgentStore::Answers answers) {
  for (AgentStore::Answer& answer : answers) {
    Emit(agent_action::AnswerStore{std::move(answer)});
  }
  dirty = dirty || store.dirty();
}

// A generation that was left at a boundary closes later, or never: it is over here when the last
// local worker has left it.
void AgentCore::State::ForgetOldStores() {
  AnswerStore(store.Drop([this](const GenerationId& generation) {
    if (generation.number <= closed) {
      return true;
    }
    return std::ranges::none_of(workers, [&](const auto& entry) {
      const AgentWorker& worker = entry.second;
      return worker.open() && worker.reading.generation == generation;
    });
  }));
}

}  // namespace elastic::internal
