#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "worker_runtime/elastic.h"

namespace fashion {

// Writes down which samples a rank trained on, for tests that count them, in a file of its own for
// each process. Two lines per step, each flushed at once:
//
//   ids STEP GENERATION ID ID ...   before the gradients are summed
//   loss STEP GENERATION LOSS       after that, before the commit
//
// The ids must stand there before the sum: from then on the others can commit the step without this
// rank, which may die before it writes another word although its samples count. So a step may stand
// in the files for several generations; what counts are the lines of the highest one, since a step
// that was committed is never done again.
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

  struct Step {
    uint64_t step = 0;
    uint32_t generation = 0;
  };
  void WriteIds(const Step& at, const std::vector<uint64_t>& ids) {
    if (!file_.is_open()) {
      return;
    }
    file_ << "ids " << at.step << ' ' << at.generation;
    for (const uint64_t id : ids) {
      file_ << ' ' << id;
    }
    file_ << std::endl;
  }
  void WriteLoss(const Step& at, double loss) {
    if (file_.is_open()) {
      file_ << "loss " << at.step << ' ' << at.generation << ' ' << loss << std::endl;
    }
  }

 private:
  std::ofstream file_;
};

}  // namespace fashion
