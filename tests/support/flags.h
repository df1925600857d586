#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace elastic::internal::testing {

// `--name value` pairs of the test programs. A flag that nobody asked for is an error at Check():
// a misspelt one must not silently test something else.
class Flags {
 public:
  Flags(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
      values_[argv[i]] = argv[i + 1];
    }
    odd_ = argc % 2 == 0;
  }

  std::string Text(const std::string& name, const std::string& standard) {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      return standard;
    }
    std::string value = found->second;
    values_.erase(found);
    return value;
  }
  int64_t Number(const std::string& name, int64_t standard) {
    return std::strtoll(Text(name, std::to_string(standard)).c_str(), nullptr, 10);
  }

  // Whether the value is the second one of two; the first one is the standard.
  bool Second(const std::string& name, const std::string& first, const std::string& second) {
    const std::string value = Text(name, first);
    if (value != first && value != second) {
      std::fprintf(stderr, "%s %s: give %s or %s\n", name.c_str(), value.c_str(), first.c_str(),
                   second.c_str());
      std::exit(64);
    }
    return value == second;
  }

  // Ends the process with 64 when something was left over.
  void Check() const {
    if (odd_ || !values_.empty()) {
      std::fprintf(stderr, "unknown or incomplete flag: %s\n",
                   values_.empty() ? "(last)" : values_.begin()->first.c_str());
      std::exit(64);
    }
  }

 private:
  std::map<std::string, std::string> values_;
  bool odd_ = false;
};

}  // namespace elastic::internal::testing
