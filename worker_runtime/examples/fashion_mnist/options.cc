#include "worker_runtime/examples/fashion_mnist/options.h"

#include <charconv>
#include <string_view>

namespace fashion {

namespace {

elastic::Status Bad(std::string_view flag, std::string_view value, const char* wanted) {
  return {elastic::Code::kInvalidArgument,
          std::string(flag) + " " + std::string(value) + ": " + wanted};
}

bool ParseNumber(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// `15ms`, `2s`, `500us`, or a bare number of seconds.
bool ParseTime(std::string_view text, int64_t& nanoseconds) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const double scale = unit == "us"                  ? 1e3
                       : unit == "ms"                ? 1e6
                       : unit == "s" || unit.empty() ? 1e9
                                                     : 0;
  nanoseconds = static_cast<int64_t>(value * scale);
  return error == std::errc() && scale > 0 && value >= 0 && value * scale < 1e12;
}

elastic::Status Set(std::string_view flag, std::string_view value, Options& options) {
  if (flag == "--data") {
    options.data = value;
  } else if (flag == "--record") {
    options.record = value;
  } else if (flag == "--epochs") {
    if (!ParseNumber(value, options.epochs) || options.epochs == 0) {
      return Bad(flag, value, "need a number of passes over the data, at least 1");
    }
  } else if (flag == "--seed") {
    if (!ParseNumber(value, options.seed)) {
      return Bad(flag, value, "need a whole number");
    }
  } else if (flag == "--report-interval") {
    if (!ParseNumber(value, options.report_interval) || options.report_interval == 0) {
      return Bad(flag, value, "need a number of steps, at least 1");
    }
  } else if (flag == "--step-time") {
    if (!ParseTime(value, options.step_time_ns)) {
      return Bad(flag, value, "need a time such as 15ms or 0.1s, less than 1000s");
    }
  } else {
    return {elastic::Code::kInvalidArgument, "unknown flag " + std::string(flag) + ": see --help"};
  }
  return elastic::Status();
}

}  // namespace

const char* Usage() {
  return "fashion_mnist: trains a small network on Fashion-MNIST, alone or under elastic-run\n"
         "  --data DIR             folder of the data set (/usr/share/datasets/fashion-mnist)\n"
         "  --epochs N             passes over the data (5)\n"
         "  --seed N               of the first weights and the samples' order (1)\n"
         "  --report-interval N    steps between two lines of rank 0 (50)\n"
         "  --step-time TIME       a step takes at least so long, e.g. 15ms (0)\n"
         "  --record PREFIX        each rank writes what it trained on to PREFIX.INCARNATION:\n"
         "                         sample ids and loss of each step; see recorder.h\n";
}

// Both `--flag value` and `--flag=value`.
elastic::Status Parse(int count, char** arguments, Options& options) {
  for (int i = 1; i < count; ++i) {
    std::string_view flag = arguments[i];
    if (flag == "--help") {
      options.help = true;
      return elastic::Status();
    }
    if (const size_t equals = flag.find('='); equals != std::string_view::npos) {
      ELASTIC_RETURN_IF_ERROR(Set(flag.substr(0, equals), flag.substr(equals + 1), options));
      continue;
    }
    if (i + 1 == count) {
      return Bad(flag, "", "the value is missing, or no such flag: see --help");
    }
    ELASTIC_RETURN_IF_ERROR(Set(flag, arguments[++i], options));
  }
  return elastic::Status();
}

}  // namespace fashion
