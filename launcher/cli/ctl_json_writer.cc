#include "launcher/cli/ctl_json_writer.h"

#include <cstdio>
#include <utility>

namespace elastic::internal {

namespace {
constexpr size_t kIndent = 2;
}  // namespace

void JsonWriter::Begin(std::string_view key, char open, char close) {
  StartItem(key);
  out_ += open;
  levels_.push_back({.close = close});
}

void JsonWriter::End() {
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.empty) {
    out_ += "\n" + std::string(kIndent * levels_.size(), ' ');
  }
  out_ += level.close;
}

void JsonWriter::StartItem(std::string_view key) {
  if (levels_.empty()) {
    return;
  }
  out_ += levels_.back().empty ? "\n" : ",\n";
  levels_.back().empty = false;
  out_.append(kIndent * levels_.size(), ' ');
  if (!key.empty()) {
    Quote(key);
    out_ += ": ";
  }
}

void JsonWriter::Quote(std::string_view text) {
  out_ += '"';
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      out_ += '\\';
      out_ += character;
    } else if (static_cast<unsigned char>(character) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(character));
      out_ += escaped;
    } else {
      out_ += character;
    }
  }
  out_ += '"';
}

void JsonWriter::Text(std::string_view key, std::string_view value) {
  StartItem(key);
  Quote(value);
}

void JsonWriter::Number(std::string_view key, int64_t value) {
  StartItem(key);
  out_ += std::to_string(value);
}

void JsonWriter::Flag(std::string_view key, bool value) {
  StartItem(key);
  out_ += value ? "true" : "false";
}

void JsonWriter::Null(std::string_view key) {
  StartItem(key);
  out_ += "null";
}

void JsonWriter::Milliseconds(std::string_view key, Duration value) {
  StartItem(key);
  char text[64];
  std::snprintf(text, sizeof text, "%.3f", ToMilliseconds(value));
  out_ += text;
}

std::string JsonWriter::Take() { return std::exchange(out_, std::string()) + "\n"; }

}  // namespace elastic::internal
