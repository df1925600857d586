#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "worker_runtime/elastic.h"

namespace fashion {

// Writes down which samples a rank trained on, for tests that count them: one line per step,
// `STEP GENERATION LOSS ID ID ...`, in a file of its own for each process.
//
// A line is written and flushed before the commit of its step: written after it, the line of a rank
// that dies in between would be missing although its step is committed. So a step may stand in the
// files for several generations; what counts are the lines of the highest one, since a step that
// was committed is never done again.
class Recorder {
 public:
  // Errors: INVALID_ARGUMENT when the file cannot be written. An empty prefix records nothing.
  elastic::Status Open(const std::string& prefix, const std::string& incarnation) {
    if (prefix.empty()) {
      return elastic::Status();
    }
    const std::string path = prefix + "." + incarnation;
    file_.open(path, std::ios::app);
    if (!file_) {
      return {elastic::Code::kInvalidArgument,
              "--record " + prefix + ": cannot write " + path + "; give a folder that exists"};
    }
    file_.precision(9);
    return elastic::Status();
  }

  struct Line {
    uint64_t step = 0;
    uint32_t generation = 0;
    double loss = 0;
  };
  void Write(const Line& line, const std::vector<uint64_t>& ids) {
    if (!file_.is_open()) {
      return;
    }
    file_ << line.step << ' ' << line.generation << ' ' << line.loss;
    for (const uint64_t id : ids) {
      file_ << ' ' << id;
    }
    file_ << std::endl;
  }

 private:
  std::ofstream file_;
};

}  // namespace fashion
