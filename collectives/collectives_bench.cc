// Time and rate of allreduce over TCP on the loopback, ranks as threads:
//   collectives_bench [ranks...]        (default: 2 4)
// Rate is bytes of the input per second of one call, as the literature's "algorithm bandwidth".

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "collectives/testing/group.h"
#include "rendezvous/base/real_clock.h"

using namespace elastic::internal;

namespace {

struct Row {
  double median_us = 0;
  double best_us = 0;
};

Row Measure(Group& group, size_t count, int rounds) {
  std::vector<std::vector<float>> data(static_cast<size_t>(group.size()),
                                       std::vector<float>(count));
  std::vector<double> times;
  std::barrier line(group.size());
  group.Run([&](int rank) {
    std::vector<float>& mine = data[static_cast<size_t>(rank)];
    for (int round = 0; round < rounds + 2; ++round) {
      // Owners rewrite their data: else it stays in caches in a way no training step sees.
      std::ranges::fill(mine, static_cast<float>(rank + round));
      line.arrive_and_wait();
      const Instant start = Now();
      const Event event = group.at(rank).AllReduce(mine.data(), mine.data(), count,
                                                   DataType::kFloat32, ReduceOp::kSum);
      if (!event.ok()) {
        std::fprintf(stderr, "%s\n", event.status().ToString().c_str());
        std::exit(1);
      }
      line.arrive_and_wait();
      if (rank == 0 && round >= 2) {
        times.push_back(ToMilliseconds(Now() - start) * 1000);
      }
    }
  });
  std::ranges::sort(times);
  return {.median_us = times[times.size() / 2], .best_us = times.front()};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    sizes.push_back(std::max(2, std::atoi(argv[i])));
  }
  if (sizes.empty()) {
    sizes = {2, 4};
  }
  std::printf("%6s %12s %12s %12s %8s\n", "ranks", "bytes", "median us", "best us", "GB/s");
  for (const int size : sizes) {
    Group group(Transport::kTcp, size);
    for (const size_t bytes : {size_t{4}, size_t{16} << 10, size_t{1} << 20, size_t{64} << 20}) {
      const int rounds = bytes < (1u << 20) ? 500 : bytes == (1u << 20) ? 100 : 10;
      const Row row = Measure(group, bytes / sizeof(float), rounds);
      std::printf("%6d %12zu %12.1f %12.1f %8.2f\n", size, bytes, row.median_us, row.best_us,
                  static_cast<double>(bytes) / row.median_us / 1000);
    }
  }
  return 0;
}
