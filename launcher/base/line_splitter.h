#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace elastic::internal {

// Cuts a stream of bytes into whole lines, so that lines of several streams can share one output
// without running into each other. A line longer than `line_bytes_max` is passed on in pieces, each
// ended by a newline: memory stays bounded and no byte is lost.
class LineSplitter {
 public:
  explicit LineSplitter(size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  // The lines that are whole now, newlines included; empty if there is none.
  std::string Add(std::string_view bytes) {
    partial_ += bytes;
    const size_t end = partial_.rfind('\n');
    std::string lines;
    if (end != std::string::npos) {
      lines = partial_.substr(0, end + 1);
      partial_.erase(0, end + 1);
    }
    if (partial_.size() >= line_bytes_max_) {
      lines += Finish();
    }
    return lines;
  }

  // What is left at the end of the stream, as a line.
  std::string Finish() {
    std::string rest = std::move(partial_);
    partial_.clear();
    return rest.empty() ? rest : rest + '\n';
  }

 private:
  size_t line_bytes_max_;
  std::string partial_;
};

}  // namespace elastic::internal
