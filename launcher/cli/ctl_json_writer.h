#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/base/time.h"

namespace elastic::internal {

// Writes JSON (RFC 8259) with two blanks a level. Elements of arrays have an empty key.
class JsonWriter {
 public:
  void BeginObject(std::string_view key) { Begin(key, '{', '}'); }
  void EndObject() { End(); }
  void BeginArray(std::string_view key) { Begin(key, '[', ']'); }
  void EndArray() { End(); }
  void Text(std::string_view key, std::string_view value);
  void Number(std::string_view key, int64_t value);
  void Flag(std::string_view key, bool value);
  void Null(std::string_view key);
  void Milliseconds(std::string_view key, Duration value);  // with three decimals
  // The document; the writer is empty afterwards.
  std::string Take();

 private:
  struct Level {
    char close;
    bool empty = true;
  };
  void Begin(std::string_view key, char open, char close);
  void End();
  void StartItem(std::string_view key);
  void Quote(std::string_view text);

  std::string out_;
  std::vector<Level> levels_;
};

}  // namespace elastic::internal
