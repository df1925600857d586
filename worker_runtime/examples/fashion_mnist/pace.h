#pragma once

#include <cstdint>

namespace fashion {

// Time for the example, by timers of the kernel: a step that takes at least so long, so that a
// person can watch the training, and the seconds since the last report.
class Pace {
 public:
  // `step_ns` 0: as fast as the machine can.
  explicit Pace(int64_t step_ns);
  ~Pace();
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  // Returns when the present step is at least `step_ns` old; the next one begins then.
  void WaitForStepEnd() const;
  // Since the last call, or since the start.
  double SecondsSinceReport();

 private:
  const int64_t step_ns_;
  const int step_timer_;
  const int report_timer_;
};

}  // namespace fashion
