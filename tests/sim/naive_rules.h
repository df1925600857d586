#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/base/log.h"

// Who is kept, which ranks they get and where they go on from: so plain that it can be checked by
// reading it. naive_test.cc holds the core to it.
namespace elastic::internal {

inline constexpr int kHosts = 4, kSlots = 2, kEventsMax = 6, kNp = 2;
enum class What : uint8_t { kReady, kDead, kHostLost, kHostBack };
struct Happening {
  What what;
  int host = 0;
  int32_t slot = 0;
  int ahead = 0;  // ranks of this parity have made one more commit when it happens
};
inline std::string Describe(const std::vector<Happening>& path) {
  static constexpr const char* kNames[] = {"ready", "dead", "host lost", "host back"};
  std::string text;
  for (const Happening& one : path) {
    text += StrCat(kNames[static_cast<size_t>(one.what)], " ", one.host, ":", one.slot, " ahead ",
                   one.ahead, "; ");
  }
  return text;
}

using Place = std::pair<int, int32_t>;  // host, slot
struct Outcome {
  std::vector<Place> ranks;
  int64_t step = -1;  // that they go on from
  bool operator==(const Outcome&) const = default;
};

struct Naive {
  bool up[kHosts] = {true, true, true, true};
  std::vector<Place> members, waiting;
  std::map<Place, int64_t> held;    // newest step of each member
  std::map<Place, int64_t> copies;  // of members that died since the generation began
  bool formed = false;
  bool over = false;  // what follows depends on time-outs: not looked at any further

  // Members that live on hosts that are there, in their old order.
  std::vector<Place> Keep() const {
    std::vector<Place> keep;
    for (const Place& member : members) {
      if (up[member.first] && !copies.contains(member)) {
        keep.push_back(member);
      }
    }
    return keep;
  }
  // Those that are kept first, newcomers by host, then slot.
  static std::vector<Place> Ranks(std::vector<Place> keep, std::vector<Place> newcomers) {
    std::sort(newcomers.begin(), newcomers.end());
    keep.insert(keep.end(), newcomers.begin(), newcomers.end());
    return keep;
  }
  // The newest that anybody has, alive or dead, on a host that is there.
  int64_t Resume() const {
    int64_t newest = -1;
    for (const auto* all : {&held, &copies}) {
      for (const auto& [place, step] : *all) {
        newest = up[place.first] ? std::max(newest, step) : newest;
      }
    }
    return newest;
  }
  Outcome Begin(std::vector<Place> ranks, int64_t from) {
    members = std::move(ranks);
    waiting.clear();
    held.clear();
    copies.clear();
    formed = true;
    for (const Place& member : members) {
      held[member] = from + 1;  // all commit once
    }
    return {members, from};
  }

  // The generation that it leads to, if any.
  std::optional<Outcome> Take(const Happening& event) {
    const Place place{event.host, event.slot};
    if (event.what == What::kDead || event.what == What::kHostLost) {
      for (size_t rank = 0; rank < members.size(); ++rank) {
        held[members[rank]] += static_cast<int>(rank % 2) == event.ahead ? 1 : 0;
      }
    }
    const bool stood = !Keep().empty();
    bool broke = false;
    switch (event.what) {
      case What::kReady: waiting.push_back(place); break;
      case What::kDead:
        copies[place] = held[place];
        held.erase(place);
        broke = true;
        break;
      case What::kHostLost:
        up[event.host] = false;
        broke = std::ranges::any_of(members, [&](Place one) { return one.first == event.host; });
        over = broke && Keep().empty();
        break;
      case What::kHostBack: up[event.host] = true; break;
    }
    if (!formed) {
      return std::ssize(waiting) == kNp ? std::optional(Begin(Ranks({}, waiting), -1))
                                        : std::nullopt;
    }
    const std::vector<Place> keep = Keep();
    if (over || (!broke && waiting.empty()) || (keep.empty() && waiting.empty())) {
      return std::nullopt;
    }
    const int64_t from = stood && !broke ? held[keep.front()] : Resume();
    return Begin(Ranks(keep, waiting), from);
  }

  std::vector<Happening> Next() const {
    std::vector<Happening> next;
    for (int host = 0; host < kHosts && !over; ++host) {
      if (!up[host]) {
        next.push_back({What::kHostBack, host});
        continue;
      }
      bool waits = false;
      for (int32_t slot = 0; slot < kSlots; ++slot) {
        const Place place{host, slot};
        const bool is_waiting = std::ranges::count(waiting, place) > 0;
        waits = waits || is_waiting;
        if (held.contains(place)) {
          next.push_back({What::kDead, host, slot, 0});
          next.push_back({What::kDead, host, slot, 1});
        } else if (!is_waiting) {
          next.push_back({What::kReady, host, slot});
        }
      }
      if (formed || !waits) {
        next.push_back({What::kHostLost, host, 0, 0});
        next.push_back({What::kHostLost, host, 0, 1});
      }
    }
    return next;
  }

  // Equal for states that lead to equal things. Hosts can be swapped once the first round is over:
  // from then on newcomers come one at a time.
  std::string Key() const {
    std::vector<std::string> hosts;
    for (int host = 0; host < kHosts; ++host) {
      std::vector<std::string> slots;
      for (int32_t slot = 0; slot < kSlots; ++slot) {
        const Place place{host, slot};
        const auto rank = std::ranges::find(members, place) - members.begin();
        const auto copy = copies.find(place);
        slots.push_back(StrCat(held.contains(place) ? rank : -1, ",",
                               copy == copies.end() ? -1 : Resume() - copy->second, ",",
                               std::ranges::count(waiting, place)));
      }
      if (formed) {
        std::ranges::sort(slots);
      }
      hosts.push_back(StrCat(up[host] ? "up " : "away ", slots[0], " ", slots[1], "; "));
    }
    if (formed) {
      std::ranges::sort(hosts);
    }
    std::string key = StrCat(formed ? "" : "first ");
    for (const std::string& host : hosts) {
      key += host;
    }
    return key;
  }
};

}  // namespace elastic::internal
