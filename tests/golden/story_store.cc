#include <algorithm>

#include "rendezvous/base/hash.h"
#include "tests/golden/story.h"

// Put and get: what an agent tells of its workers' calls, and what it is answered.
namespace elastic::internal {

namespace {
const char* VerdictName(StoreVerdict verdict) {
  switch (verdict) {
    case StoreVerdict::kUnspecified: return "?";
    case StoreVerdict::kStored: return "stored";
    case StoreVerdict::kDiffers: return "differs";
    case StoreVerdict::kFull: return "full";
    case StoreVerdict::kOver: return "over";
  }
  return "?";
}
}  // namespace

// A puts id=x | A gets id: in the generation of its word.
void Story::UseStore(Actor& actor, const std::string& verb, const std::string& text) {
  Agent& agent = agents_.at(actor.host);
  const size_t equals = text.find('=');
  StoreKey key{actor.report.generation, text.substr(0, equals)};
  if (verb == "puts") {
    agent.puts.push_back({std::move(key), text.substr(equals + 1)});
  } else {
    agent.wanted.push_back(std::move(key));
  }
}

// What is answered is not reported again.
void Story::TakeStore(Agent& agent, const Directive& directive) {
  for (const StoreAnswer& answer : directive.put_answers) {
    std::erase_if(agent.puts, [&](const StorePut& put) {
      return put.key == answer.key && HashText(put.value) == answer.digest;
    });
  }
  for (const StorePut& value : directive.values) {
    std::erase(agent.wanted, value.key);
  }
}

void Story::ShowStore(const Directive& now_told, const Directive& before, std::ostream& line) {
  if (now_told.put_answers != before.put_answers) {
    for (const StoreAnswer& answer : now_told.put_answers) {
      line << " " << answer.key.name << "@" << answer.key.generation.number.value << "-"
           << VerdictName(answer.verdict);
    }
  }
  if (now_told.values != before.values) {
    for (const StorePut& value : now_told.values) {
      line << " " << value.key.name << "@" << value.key.generation.number.value << "="
           << value.value;
    }
  }
}

}  // namespace elastic::internal
