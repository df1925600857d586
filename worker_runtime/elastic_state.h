#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "elastic.h"

namespace elastic {

// State in the program's own memory, changed in place (elastic_state_c.h has the full contract).
// Each Commit copies the items, a restore inside Join or Run copies them back.
//
//   std::vector<float> weights = FirstWeights(), momentum(weights.size());
//   elastic::Items items;
//   if (auto status = items.Register("weights", weights); !status.ok()) { ... }
//   if (auto status = items.Register("momentum", momentum); !status.ok()) { ... }
//   elastic::Status status = runtime.Run(items, [&](elastic::Items&) {
//     ... change weights and momentum, then runtime.Commit(step) ...
//   });
//
// After Runtime::Init. Must live as long as the runtime, as must the memory.
class Items {
 public:
  // Memory for an item in that size, in bytes; null: there is none.
  using ResizeFunction = std::function<void*(size_t bytes)>;

  Items() = default;
  Items(const Items&) = delete;
  Items& operator=(const Items&) = delete;

  // `bytes` bytes at `memory`; see elastic_register.
  Status Register(const std::string& name, void* memory, size_t bytes) {
    return Status::Of(elastic_register(name.c_str(), memory, bytes, nullptr));
  }
  Status Register(const std::string& name, void* memory, size_t bytes, ResizeFunction resize) {
    resize_.push_back(std::move(resize));
    elastic_register_options options{};
    options.struct_size = sizeof options;
    options.user = &resize_.back();
    options.resize = [](void* user, const char*, size_t wanted) {
      return (*static_cast<ResizeFunction*>(user))(wanted);
    };
    Status status = Status::Of(elastic_register(name.c_str(), memory, bytes, &options));
    if (!status.ok()) {
      resize_.pop_back();
    }
    return status;
  }
  // One number or struct of plain data.
  template <class T>
  Status Register(const std::string& name, T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "state is moved between processes as bytes");
    return Register(name, &value, sizeof(T));
  }
  // All elements. A restore gives the vector the committed size; after a change of its size by the
  // program, Resize before the next Commit.
  template <class T>
  Status Register(const std::string& name, std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>, "state is moved between processes as bytes");
    return Register(name, values.data(), values.size() * sizeof(T),
                    [&values](size_t bytes) -> void* {
                      if (bytes % sizeof(T) != 0) {
                        return nullptr;
                      }
                      values.resize(bytes / sizeof(T));
                      return values.data();
                    });
  }

  // An item has other memory or another size from now on: elastic_resize.
  Status Resize(const std::string& name, void* memory, size_t bytes) {
    return Status::Of(elastic_resize(name.c_str(), memory, bytes));
  }
  // The vector as it is now.
  template <class T>
  Status Resize(const std::string& name, std::vector<T>& values) {
    return Resize(name, values.data(), values.size() * sizeof(T));
  }
  // An item is no part of the state any more: elastic_unregister.
  Status Unregister(const std::string& name) {
    return Status::Of(elastic_unregister(name.c_str()));
  }

 private:
  // Kept when an item is unregistered: a restore may bring it back.
  std::deque<ResizeFunction> resize_;
};

}  // namespace elastic
