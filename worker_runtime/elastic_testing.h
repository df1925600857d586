#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "elastic.h"

// elastic_testing.h: whole jobs inside a user's own tests, kills included; C++17, any test
// framework or none. Included as <elastic/elastic_testing.h>; link ElasticRun::testing.
//
// The problem: what a training program does when a rank is lost can only be tested by losing one,
// and a rank is a process (libelastic has one per process), started by elastic-run. The idea: a
// function of the test's own program is the ranks' program. Cluster starts a real elastic-run,
// whose workers are this very program again; before main (and any framework's main) they call the
// function and end with what it returns. So a rank sees the code under test, and nothing of the
// test that runs beside it.
//
//   int Train(elastic::testing::Rank& rank) {          // runs in each rank
//     elastic::Runtime& runtime = rank.runtime();       // initialised
//     elastic::State<Counter> state;
//     ... runtime.CreateState(state), runtime.Run(state, [&](auto& counter) {
//       ... runtime.Commit(step)); rank.Say("step " + std::to_string(step)); ... });
//   }
//   elastic::testing::Cluster cluster(4);
//   elastic::Status status = cluster.Start(Train);
//   status = cluster.WaitFor("step 5", 4);             // all four have committed it
//   status = cluster.Kill(2);                          // SIGKILL
//   status = cluster.Wait();                           // OK: the job finished, exit code 0
//
// Turned down: ranks as threads of the test. A process-wide runtime is what the program under test
// has, and a thread cannot be killed as a process is.

namespace elastic::testing {

// The process that a rank's function runs in. For the function's thread, but for Say.
class Rank {
 public:
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  // Initialised: it is connected to the agent of the job; not a member yet.
  Runtime& runtime() { return *runtime_; }
  // Those of Cluster::Start.
  const std::vector<std::string>& arguments() const { return arguments_; }
  // The place of this process, 0 .. ranks-1, that Cluster::Kill knows it by. A replacement has the
  // slot of the process that it replaces, and another rank perhaps.
  int slot() const { return slot_; }
  // Tells the test a line, which stays told when this process is killed. At most kSayBytesMax
  // bytes, without newlines: what is beyond them is cut. Any thread.
  void Say(std::string_view text) const;

  // Longest line of Say, in bytes.
  static constexpr size_t kSayBytesMax = 2048;

 private:
  friend struct RankProcess;
  Rank() = default;

  Runtime* runtime_ = nullptr;
  std::vector<std::string> arguments_;
  int slot_ = 0;
  int pipe_ = -1;
  std::string incarnation_;
};

// A function of the test's program, without captures; what it returns is the process's exit code.
// An exception that leaves it ends the process as it would leave main.
using RankFunction = int (*)(Rank&);

// What a rank said.
struct Message {
  int slot = 0;             // of the process, 0 .. ranks-1
  std::string incarnation;  // of the process, as Runtime::incarnation has it
  std::string text;
};

// A job of `ranks` processes on this machine. All calls from the test's one thread. Every wait ends
// at its limit with DEADLINE_EXCEEDED and the output of the job.
class Cluster {
 public:
  // What elastic-run is started with.
  struct Options {
    int ranks = 2;      // 1 .. 256; elastic-run's -np
    int min_ranks = 1;  // 1 .. ranks; elastic-run's --min-np
    // More flags of elastic-run, as {"--heartbeat-timeout", "1s"}.
    std::vector<std::string> flags;
    // Path of elastic-run. Empty: $ELASTIC_RUN, else the one in $PATH.
    std::string launcher;
  };
  using Limit = std::chrono::milliseconds;
  static constexpr Limit kLimit{60000};

  explicit Cluster(int ranks);
  explicit Cluster(Options options);
  // Ends the job and waits for its end, processes and files included; kills it when it does not end
  // by itself.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Starts the job; once per object. Does not wait for the ranks. Errors: INVALID_ARGUMENT for
  // options out of range or a function that is not of this program (of a shared library);
  // FAILED_PRECONDITION when there is no elastic-run, or called twice; INTERNAL for what the
  // system refuses.
  Status Start(RankFunction function, std::vector<std::string> arguments = {});

  // Waits until ranks have said `text` at least `times` times, all together. Errors:
  // FAILED_PRECONDITION when the job has ended before; DEADLINE_EXCEEDED.
  Status WaitFor(std::string_view text, int times = 1, Limit limit = kLimit);
  // What was said so far, in the order in which it came.
  std::vector<Message> messages() const;

  // SIGKILL, SIGSTOP and SIGCONT for the newest process of this slot. A killed one is replaced by
  // the job, and so is a stopped one after a heartbeat. Errors: FAILED_PRECONDITION when no process
  // has started there yet or it has ended.
  Status Kill(int slot);
  Status Stop(int slot);
  Status Continue(int slot);

  // Waits for the end of the job. Errors: INTERNAL when its exit code is not 0 (exit_code());
  // DEADLINE_EXCEEDED; FAILED_PRECONDITION without Start.
  Status Wait(Limit limit = kLimit);
  // Of elastic-run, as a shell has it; -1 as long as it runs.
  int exit_code() const;
  // What elastic-run and the ranks have written so far, standard error included.
  std::string output() const;

 private:
  class Job;
  const Options options_;
  std::unique_ptr<Job> job_;
};

}  // namespace elastic::testing
