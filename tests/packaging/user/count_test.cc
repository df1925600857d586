// A user's own test, without a test framework: a rank is killed, and nothing is counted twice.
#include <elastic/elastic_testing.h>

#include <cstdio>

struct Counter {
  int64_t value;
  int64_t last;  // the value at which training ends; 0: not known yet
};

static int Count(elastic::testing::Rank& rank) {
  elastic::Runtime& runtime = rank.runtime();
  elastic::State<Counter> state;
  elastic::Status status = runtime.CreateState(state);
  if (status.ok()) {
    status = runtime.Run(state, [&](elastic::State<Counter>& counter) {
      // Ends some steps after the loss, so that the kill never comes too late.
      while (counter.current().last == 0 || counter.current().value < counter.current().last) {
        ELASTIC_RETURN_IF_ERROR(runtime.Barrier());
        const Counter now = counter.current();
        counter.next() = {now.value + 1,
                          now.last == 0 && runtime.size() < 3 ? now.value + 100 : now.last};
        ELASTIC_RETURN_IF_ERROR(runtime.Commit(static_cast<uint64_t>(counter.next().value)));
        rank.Say("step " + std::to_string(counter.current().value));
      }
      return elastic::Status();
    });
  }
  return status.ok() && state.current().value == state.current().last ? 0 : 1;
}

int main() {
  elastic::testing::Cluster cluster(3);
  elastic::Status status = cluster.Start(Count);
  if (status.ok()) {
    status = cluster.WaitFor("step 10", 3);
  }
  if (status.ok()) {
    status = cluster.Kill(1);
  }
  if (status.ok()) {
    status = cluster.Wait();
  }
  std::printf("%s\n", status.ok() ? "survived" : status.message().c_str());
  return status.ok() ? 0 : 1;
}
