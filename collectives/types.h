#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/base/ids.h"
#include "rendezvous/base/roster.h"
#include "rendezvous/base/status.h"
#include "rendezvous/base/time.h"

namespace elastic::internal {

enum class DataType : uint8_t { kFloat32 = 1, kFloat64 = 2, kInt64 = 3, kInt32 = 4, kUint8 = 5 };
enum class ReduceOp : uint8_t { kSum = 1, kAverage = 2, kMin = 3, kMax = 4, kProduct = 5 };
size_t SizeOf(DataType type);  // 0 for a value that is no type

Status TooManyCommunicators();  // kCreatedCommunicatorsMax (limits.h)

// Where an operation is queued. CPU collectives run in the caller's thread; the type is the seam
// for device streams.
struct Stream {};

// Completion of an operation; on CPUs it is complete when the call returns.
class [[nodiscard]] Event {
 public:
  explicit Event(Status status) : status_(std::move(status)) {}
  const Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }

 private:
  Status status_;
};

// What every wait of the data plane watches besides its sockets: a mark.
class Interrupt {
 public:
  virtual ~Interrupt() = default;
  // Level-triggered: readable while a generation is fenced. The runtime drains it once the word is
  // that of the next one, and then ends what still waits by Communicator::Abort.
  virtual int event_fd() const = 0;
  // Rereads the truth, the commit word: true once `generation` is fenced or not the present one.
  virtual bool Over(GenerationNumber generation) const = 0;
};

// A group of connections of one generation. Several of them may exist in a generation; each has
// its own edges, so that their operations do not mix.
enum class Channel : uint8_t {
  kMain = 1,     // every generation has it: the program's collectives and commits
  kCreated = 2,  // and up: those that the program created in this generation, in order
};

}  // namespace elastic::internal
