#include "worker_runtime/state_items.h"

#include <algorithm>
#include <utility>

#include "rendezvous/base/check.h"
#include "rendezvous/base/limits.h"
#include "rendezvous/base/log.h"

namespace elastic::internal {

namespace {

Status NoSuchItem(const char* call, const std::string& name) {
  return InvalidArgumentError(
      StrCat(call, ": no item \"", name, "\" is registered: elastic_register makes one"));
}

Status CheckMemory(const char* call, const std::string& name, const void* memory, size_t bytes) {
  if (memory == nullptr && bytes > 0) {
    return InvalidArgumentError(
        StrCat(call, ": NULL memory for ", bytes, " bytes of item \"", name, "\""));
  }
  return OkStatus();
}

}  // namespace

Status MixedStateError() {
  return FailedPreconditionError(
      "this program uses both elastic_state_create and elastic_register: state is either in the "
      "runtime's two buffers or in items of the program's own memory, so use one of the two");
}

Status FirstItemTooLateError(const std::string& name) {
  return FailedPreconditionError(
      StrCat("elastic_register: \"", name,
             "\" is the first item, and the job was joined without any: register it before "
             "elastic_join or elastic_run, with 0 bytes and a resize function if its size is not "
             "known yet"));
}

Status StateItems::Register(StateItem item) {
  if (item.name.empty() || item.name.size() > kStateItemNameBytesMax ||
      item.name.find('\0') != std::string::npos) {
    return InvalidArgumentError(StrCat("elastic_register: name \"", item.name, "\" of ",
                                       item.name.size(), " bytes: give 1 to ",
                                       kStateItemNameBytesMax));
  }
  RETURN_IF_ERROR(CheckMemory("elastic_register", item.name, item.memory, item.bytes));
  if (registered_.size() >= kStateItemsMax) {
    return ResourceExhaustedError(StrCat("elastic_register: \"", item.name, "\" would be item ",
                                         registered_.size() + 1, ", the limit is ", kStateItemsMax,
                                         ": register larger pieces"));
  }
  std::string name = item.name;
  const auto [at, is_new] = registered_.try_emplace(std::move(name), std::move(item));
  if (!is_new) {
    return FailedPreconditionError(StrCat("elastic_register: item \"", at->first,
                                          "\" is registered already, with ", at->second.bytes,
                                          " bytes: elastic_resize changes it"));
  }
  changed_ = true;
  layout_.reset();
  return OkStatus();
}

Status StateItems::Resize(const std::string& name, void* memory, size_t bytes) {
  const auto found = registered_.find(name);
  if (found == registered_.end()) {
    return NoSuchItem("elastic_resize", name);
  }
  RETURN_IF_ERROR(CheckMemory("elastic_resize", name, memory, bytes));
  found->second.memory = static_cast<std::byte*>(memory);
  found->second.bytes = bytes;
  changed_ = true;
  layout_.reset();
  return OkStatus();
}

Status StateItems::Unregister(const std::string& name) {
  if (registered_.erase(name) == 0) {
    return NoSuchItem("elastic_unregister", name);
  }
  changed_ = true;
  layout_.reset();
  return OkStatus();
}

const StateItem* StateItems::Find(const std::string& name) const {
  const auto found = registered_.find(name);
  return found == registered_.end() ? nullptr : &found->second;
}

// ---- commit ----------------------------------------

Status StateItems::Place() {
  if (layout_) {
    return OkStatus();
  }
  std::vector<StateImageItem> items;
  items.reserve(registered_.size());
  for (const auto& [name, item] : registered_) {
    items.push_back({.name = name, .bytes = item.bytes, .offset = 0});
  }
  ASSIGN_OR_RETURN(layout_, PlaceItems(std::move(items)));
  table_ = EncodeTable(*layout_);
  return OkStatus();
}

StatusOr<size_t> StateItems::ImageBytes() {
  RETURN_IF_ERROR(Place());
  return layout_->bytes;
}

std::optional<uint64_t> StateItems::Pack(std::span<std::byte> image, const EndEarly& over) {
  ELASTIC_CHECK(layout_ && image.size() == layout_->bytes);
  HashingCopy copy(image);
  bool whole = copy.Append(table_, over);
  for (const auto& [name, item] : registered_) {
    whole = whole && copy.Append({item.memory, item.bytes}, over);
  }
  return whole ? std::optional(copy.Finish()) : std::nullopt;
}

void StateItems::Committed() {
  any_committed_ = true;
  if (std::exchange(changed_, false)) {
    committed_ = registered_;
  }
}

// ---- restore ----------------------------------------

StatusOr<StateItem> StateItems::TargetOf(const StateImageItem& wanted) const {
  const auto now = registered_.find(wanted.name);
  const auto then = committed_.find(wanted.name);
  if (now != registered_.end() && now->second.bytes == wanted.bytes) {
    return now->second;
  }
  for (const auto& [found, items] : {std::pair(now, &registered_), std::pair(then, &committed_)}) {
    if (found == items->end() || !found->second.resize) {
      continue;
    }
    StateItem item = found->second;
    item.memory = static_cast<std::byte*>(item.resize(wanted.bytes));
    item.bytes = wanted.bytes;
    if (item.memory == nullptr && wanted.bytes > 0) {
      return ResourceExhaustedError(StrCat("the resize function of item \"", wanted.name,
                                           "\" gave no memory for ", wanted.bytes, " bytes"));
    }
    return item;
  }
  if (then != committed_.end() && then->second.bytes == wanted.bytes) {
    return then->second;
  }
  if (now == registered_.end()) {
    return InvalidArgumentError(
        StrCat("the job's state has an item \"", wanted.name, "\" of ", wanted.bytes,
               " bytes, which this program has not registered: register it before elastic_join, "
               "with a resize function if its size is not known yet"));
  }
  return InvalidArgumentError(
      StrCat("item \"", wanted.name, "\" has ", wanted.bytes, " bytes in the job's state, but ",
             now->second.bytes,
             " bytes were registered here: register it with that size on all hosts, or give "
             "elastic_register a resize function"));
}

// What was registered since the image was committed is taken back. A program that has committed
// nothing yet is at its start, where it says what the job's state should have.
Status StateItems::DropUnlessIn(const Items& restored) {
  for (const auto& [name, item] : registered_) {
    if (restored.contains(name)) {
      continue;
    }
    if (item.resize) {
      item.resize(0);
    } else if (!any_committed_) {
      return InvalidArgumentError(
          StrCat("this program registered an item \"", name, "\" of ", item.bytes,
                 " bytes, which the job's state does not have: start the same program on all "
                 "hosts, or give elastic_register a resize function if the item may be gone"));
    }
  }
  return OkStatus();
}

Status StateItems::Restore(std::span<const std::byte> image) {
  ASSIGN_OR_RETURN(const StateImageLayout layout, DecodeTable(image));
  Items restored;
  for (const StateImageItem& wanted : layout.items) {
    ASSIGN_OR_RETURN(StateItem item, TargetOf(wanted));
    restored.emplace_hint(restored.end(), wanted.name, std::move(item));
  }
  RETURN_IF_ERROR(DropUnlessIn(restored));
  for (const StateImageItem& wanted : layout.items) {
    CopyPastCaches(restored.at(wanted.name).memory, image.subspan(wanted.offset, wanted.bytes));
  }
  registered_ = std::move(restored);
  committed_ = registered_;
  any_committed_ = true;
  changed_ = false;
  layout_.reset();
  return OkStatus();
}

}  // namespace elastic::internal
