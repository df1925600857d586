// A user's whole program in C++17: the ranks add up ones until the sum is 100.
#include <elastic/elastic.h>

#include <cstdio>

struct Counter {
  int64_t value;
};

int main() {
  elastic::Runtime runtime;
  elastic::State<Counter> state;
  elastic::Status status = runtime.Init();
  if (status.ok()) {
    status = runtime.CreateState(state);
  }
  if (status.ok()) {
    status = runtime.Run(state, [&](elastic::State<Counter>& counter) {
      while (counter.current().value < 100) {
        int64_t one = 1;
        ELASTIC_RETURN_IF_ERROR(runtime.AllReduce(&one, 1));
        counter.next().value = counter.current().value + one;
        ELASTIC_RETURN_IF_ERROR(runtime.Commit(static_cast<uint64_t>(counter.next().value)));
      }
      return elastic::Status();
    });
  }
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 2;
  }
  std::printf("rank %d of %d counted to %lld\n", runtime.rank(), runtime.size(),
              static_cast<long long>(state.current().value));
  return 0;
}
