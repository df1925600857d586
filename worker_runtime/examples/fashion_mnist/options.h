#pragma once

#include <cstdint>
#include <string>

#include "worker_runtime/elastic.h"

namespace fashion {

struct Options {
  std::string data = "/usr/share/datasets/fashion-mnist";
  uint64_t epochs = 5;
  uint64_t seed = 1;
  uint64_t report_interval = 50;  // steps
  int64_t step_time_ns = 0;       // a step takes at least so long
  std::string record;             // prefix of the files of recorder.h; empty: none
  bool help = false;
};

// The text of --help.
const char* Usage();

// Errors: INVALID_ARGUMENT, naming the flag, its value and what it takes.
elastic::Status Parse(int count, char** arguments, Options& options);

}  // namespace fashion
