#include <string>
#include <utility>

#include "rendezvous/base/log.h"
#include "worker_runtime/c_border.h"
#include "worker_runtime/elastic_c.h"
#include "worker_runtime/state_items.h"

// The calls of the C interface for state in place.

namespace {

using elastic::internal::InvalidArgumentError;
using elastic::internal::OkStatus;
using elastic::internal::StateItem;
using elastic::internal::StateItems;
using elastic::internal::Status;
using elastic::internal::StrCat;
using elastic::internal::border::CheckInitialised;
using elastic::internal::border::process;
using elastic::internal::border::Remember;

Status CheckName(const char* call, const char* name) {
  RETURN_IF_ERROR(CheckInitialised());
  return name == nullptr ? InvalidArgumentError(StrCat(call, ": the name is NULL")) : OkStatus();
}

// Calls on a name that is registered.
template <class Call>
elastic_status WithItems(const char* call, const char* name, Call body) {
  Status status = CheckName(call, name);
  if (status.ok()) {
    StateItems* items = process.session->items();
    status = items != nullptr
                 ? body(*items)
                 : InvalidArgumentError(StrCat(call, ": no item \"", name,
                                               "\" is registered: elastic_register makes one"));
  }
  return Remember(status);
}

}  // namespace

extern "C" {

elastic_status elastic_register(const char* name, void* memory, size_t bytes,
                                const elastic_register_options* options) {
  if (Status status = CheckName("elastic_register", name); !status.ok()) {
    return Remember(status);
  }
  if (options != nullptr && options->struct_size < sizeof(elastic_register_options)) {
    return Remember(InvalidArgumentError(StrCat("elastic_register_options with struct_size ",
                                                options->struct_size, ": set it to ",
                                                sizeof(elastic_register_options))));
  }
  StateItem item{
      .name = name, .memory = static_cast<std::byte*>(memory), .bytes = bytes, .resize = {}};
  if (options != nullptr && options->resize != nullptr) {
    item.resize = [resize = options->resize, user = options->user, own_name = item.name](
                      size_t wanted) { return resize(user, own_name.c_str(), wanted); };
  }
  return Remember(process.session->RegisterItem(std::move(item)));
}

elastic_status elastic_resize(const char* name, void* memory, size_t bytes) {
  return WithItems("elastic_resize", name,
                   [&](StateItems& items) { return items.Resize(name, memory, bytes); });
}

elastic_status elastic_unregister(const char* name) {
  return WithItems("elastic_unregister", name,
                   [&](StateItems& items) { return items.Unregister(name); });
}

elastic_status elastic_registered(const char* name, void** memory, size_t* bytes) {
  return WithItems("elastic_registered", name, [&](StateItems& items) -> Status {
    const StateItem* item = items.Find(name);
    if (item == nullptr) {
      return InvalidArgumentError(StrCat("elastic_registered: no item \"", name,
                                         "\" is registered: elastic_register makes one"));
    }
    if (memory != nullptr) {
      *memory = item->memory;
    }
    if (bytes != nullptr) {
      *bytes = item->bytes;
    }
    return OkStatus();
  });
}

}  // extern "C"
