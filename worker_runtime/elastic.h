#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elastic_c.h"
#include "elastic_sampler.h"

// elastic.h: C++17 over the C interface (elastic_c.h, which has the full contract of each call).
// Header-only, so that a program and libelastic need not share a C++ library; no exceptions of
// ours.
//
//   elastic::Runtime runtime;
//   if (elastic::Status status = runtime.Init(); !status.ok()) { print; return 2; }
//   elastic::State<Model> state;
//   if (auto status = runtime.CreateState(state); !status.ok()) { ... }
//   state.initial() = FirstModel();
//   elastic::Status status = runtime.Run(state, [&](elastic::State<Model>& model) {
//     while (!Done(model.current())) {
//       ... compute gradients from model.current() ...
//       ELASTIC_RETURN_IF_ERROR(runtime.AllReduce(gradients, count));
//       ... write all of model.next() ...
//       ELASTIC_RETURN_IF_ERROR(runtime.Commit(step));
//     }
//     return elastic::Status();
//   });

#define ELASTIC_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                             \
    if (::elastic::Status elastic_status_of_call_ = (expression); !elastic_status_of_call_.ok()) { \
      return elastic_status_of_call_;                                                              \
    }                                                                                              \
  } while (false)

namespace elastic {

// What the caller should do next: elastic_status of elastic_c.h, value by value.
enum class Code : int {
  kOk = ELASTIC_OK,
  kInvalidArgument = ELASTIC_INVALID_ARGUMENT,
  kDeadlineExceeded = ELASTIC_DEADLINE_EXCEEDED,
  kResourceExhausted = ELASTIC_RESOURCE_EXHAUSTED,
  kFailedPrecondition = ELASTIC_FAILED_PRECONDITION,
  kAborted = ELASTIC_ABORTED,
  kInternal = ELASTIC_INTERNAL,
  kUnavailable = ELASTIC_UNAVAILABLE,
  kDataLoss = ELASTIC_DATA_LOSS,
  kNotAMember = ELASTIC_NOT_A_MEMBER,
  kFinished = ELASTIC_FINISHED,
};

// OK, or a code and a text that names the remedy. From any thread, as any value.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  // The outcome of a C call made by this thread just before.
  static Status Of(elastic_status status) {
    return status == ELASTIC_OK ? Status()
                                : Status(static_cast<Code>(status), elastic_last_error());
  }

  // aborted: this generation is over, return from the function (ELASTIC_ABORTED).
  bool ok() const { return code_ == Code::kOk; }
  bool aborted() const { return code_ == Code::kAborted; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

// How a reduction combines the ranks' values: elastic_reduce_op.
enum class Op : int {
  kSum = ELASTIC_SUM,
  kAverage = ELASTIC_AVERAGE,
  kMin = ELASTIC_MIN,
  kMax = ELASTIC_MAX,
  kProduct = ELASTIC_PRODUCT,
};

// Of a log line: elastic_severity.
enum class Severity : int {
  kDebug = ELASTIC_DEBUG,
  kInfo = ELASTIC_INFO,
  kWarning = ELASTIC_WARNING,
  kError = ELASTIC_ERROR,
};

// See elastic_event and elastic_standing, which say what follows from each.
enum class Event : int {
  kContinue = ELASTIC_CONTINUE,
  kReformed = ELASTIC_REFORMED,
  kRestore = ELASTIC_RESTORE,
  kCommitWanted = ELASTIC_COMMIT_WANTED,
  kStopAt = ELASTIC_STOP_AT,
};
// Where this process stands in the job.
enum class Standing : int {
  kNone = ELASTIC_STANDING_NONE,
  kStarting = ELASTIC_STANDING_STARTING,
  kWaiting = ELASTIC_STANDING_WAITING,
  kMember = ELASTIC_STANDING_MEMBER,
  kFinished = ELASTIC_STANDING_FINISHED,
};

// One member of the generation: see elastic_member.
struct Member {
  int rank = 0;             // 0 .. size-1
  int previous_rank = -1;   // in the generation before; -1: a newcomer
  int slot = 0;             // its local_rank on its host
  std::string host;         // name as in -H
  std::string address;      // numeric: where that host is reached
  int port = 0;             // of the runtime's own connections
  std::string incarnation;  // as Runtime::incarnation there
};

// From the call on; 0: no deadline.
using Timeout = std::chrono::nanoseconds;

namespace detail {
// Lives as long as the full expression of the call that it is made in.
struct CallOptions {
  explicit CallOptions(Timeout timeout, int32_t communicator = 0) {
    options.struct_size = sizeof options;
    options.timeout_ns = timeout.count();
    options.communicator = communicator;
  }
  const elastic_call_options* get() const { return &options; }
  elastic_call_options options{};
};

template <class T>
constexpr elastic_data_type DataTypeOf() {
  if constexpr (std::is_same_v<T, float>) {
    return ELASTIC_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return ELASTIC_FLOAT64;
  } else if constexpr (std::is_same_v<T, uint8_t>) {
    return ELASTIC_UINT8;
  } else {
    static_assert(std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) >= 4,
                  "collectives take float, double, int32_t, int64_t and uint8_t");
    return sizeof(T) == 8 ? ELASTIC_INT64 : ELASTIC_INT32;
  }
}
}  // namespace detail

// The program's training state, twice: `current` is committed and read, `next` is written whole and
// becomes current at Commit. T is plain data without pointers, equal on all ranks. The memory is
// the runtime's: references are valid until the next commit or restore. See elastic_state_create.
template <class T>
class State {
 public:
  static_assert(std::is_trivially_copyable_v<T>, "state is moved between processes as bytes");

  // The newest committed state, and the one being computed: write all of it before Commit.
  const T& current() const { return *static_cast<const T*>(elastic_state_current()); }
  T& next() { return *static_cast<T*>(elastic_state_next()); }
  // The state before training; zeroed at first. Only before Join or Run.
  T& initial() { return *static_cast<T*>(elastic_state_current()); }
};

// Collectives between all ranks, called by all in the same order with equal counts: see
// elastic_c.h. T: float, double, int32_t, int64_t, uint8_t.
class Communicator {
 public:
  // `data` of every rank becomes the reduction over all ranks.
  template <class T>
  Status AllReduce(T* data, size_t count, Op op = Op::kSum, Timeout timeout = {}) {
    return AllReduce(data, data, count, op, timeout);
  }
  template <class T>
  Status AllReduce(const T* in, T* out, size_t count, Op op = Op::kSum, Timeout timeout = {}) {
    return Status::Of(elastic_allreduce(in, out, count, detail::DataTypeOf<T>(),
                                        static_cast<elastic_reduce_op>(op), Call(timeout).get()));
  }
  // `in` has size() * count elements; rank r gets the reduction of part r.
  template <class T>
  Status ReduceScatter(const T* in, T* out, size_t count, Op op = Op::kSum, Timeout timeout = {}) {
    return Status::Of(elastic_reduce_scatter(in, out, count, detail::DataTypeOf<T>(),
                                             static_cast<elastic_reduce_op>(op),
                                             Call(timeout).get()));
  }
  Status Broadcast(void* data, size_t bytes, int root, Timeout timeout = {}) {
    return Status::Of(elastic_broadcast(data, bytes, root, Call(timeout).get()));
  }
  // `out` has size() * bytes bytes.
  Status AllGather(const void* in, void* out, size_t bytes, Timeout timeout = {}) {
    return Status::Of(elastic_allgather(in, out, bytes, Call(timeout).get()));
  }
  // Rank r's part has bytes_of[r] bytes; size() numbers.
  Status AllGatherV(const void* in, void* out, const size_t* bytes_of, Timeout timeout = {}) {
    return Status::Of(elastic_allgatherv(in, out, bytes_of, Call(timeout).get()));
  }
  Status Barrier(Timeout timeout = {}) { return Status::Of(elastic_barrier(Call(timeout).get())); }

 private:
  friend class Runtime;
  detail::CallOptions Call(Timeout timeout) const {
    return detail::CallOptions(timeout, communicator_);
  }
  int32_t communicator_ = 0;  // the runtime's own
};

// The process's part in the job; at most one object per process. From the program's one thread.
class Runtime : public Communicator {
 public:
  // How the runtime logs; without a function, it does not.
  struct Options {
    // Called from any thread, one call at a time; must not call the runtime.
    std::function<void(Severity, std::string_view)> log;
    Severity log_threshold = Severity::kInfo;
  };

  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime() {
    if (initialised_) {
      elastic_shutdown();
    }
  }

  // Connects to the agent, or becomes a world of one without a launcher: elastic_init.
  Status Init() { return Init(Options{}); }
  Status Init(Options options) {
    log_ = std::move(options.log);
    elastic_init_options init{};
    init.struct_size = sizeof init;
    init.log_threshold = static_cast<elastic_severity>(options.log_threshold);
    if (log_) {
      init.log_user = this;
      init.log = [](void* user, elastic_severity severity, const char* line) {
        static_cast<Runtime*>(user)->log_(static_cast<Severity>(severity), line);
      };
    }
    Status status = Status::Of(elastic_init(&init));
    initialised_ = status.ok();
    return status;
  }

  // Makes the memory behind `state`; once, before Join or Run.
  template <class T>
  Status CreateState(State<T>&) {
    return Status::Of(elastic_state_create(sizeof(T)));
  }

  // Every call that blocks takes a time-out, after which it ends with DEADLINE_EXCEEDED.
  Status Join(Timeout timeout = {}) {
    return Status::Of(elastic_join(nullptr, detail::CallOptions(timeout).get()));
  }
  Status Finish(Timeout timeout = {}) {
    return Status::Of(elastic_finish(detail::CallOptions(timeout).get()));
  }

  // For a loop of one's own: see elastic_poll, elastic_event_fd and elastic_get_standing.
  Status Poll(Event& event) {
    elastic_event found = ELASTIC_CONTINUE;
    Status status = Status::Of(elastic_poll(&found));
    event = static_cast<Event>(found);
    return status;
  }
  int event_fd() const { return elastic_event_fd(); }
  Standing standing() const { return static_cast<Standing>(elastic_get_standing()); }

  // In rank order; empty when not a member.
  std::vector<Member> members() const {
    size_t count = 0;
    std::vector<elastic_member> raw;
    if (elastic_get_members(nullptr, 0, &count) == ELASTIC_OK && count > 0) {
      raw.resize(count);
      raw[0].struct_size = sizeof(elastic_member);
      raw.resize(elastic_get_members(raw.data(), count, &count) == ELASTIC_OK ? count : 0);
    }
    std::vector<Member> members;
    for (const elastic_member& one : raw) {
      members.push_back({one.rank, one.previous_rank, one.slot, one.host, one.address, one.port,
                         one.incarnation});
    }
    return members;
  }

  // Among the members of this generation: see elastic_put and elastic_get.
  Status Put(const std::string& key, std::string_view value, Timeout timeout = {}) {
    return Status::Of(
        elastic_put(key.c_str(), value.data(), value.size(), detail::CallOptions(timeout).get()));
  }
  Status Get(const std::string& key, std::string& value, Timeout timeout = {}) {
    value.resize(size_t{1} << 16);
    size_t bytes = value.size();
    Status status =
        Status::Of(elastic_get(key.c_str(), &value[0], &bytes, detail::CallOptions(timeout).get()));
    value.resize(status.ok() ? bytes : 0);
    return status;
  }

  // -1 when not a member (see elastic_rank).
  int rank() const { return elastic_rank(); }
  int size() const { return elastic_size(); }
  int local_rank() const { return elastic_local_rank(); }
  int local_size() const { return elastic_local_size(); }
  int cross_rank() const { return elastic_cross_rank(); }
  int cross_size() const { return elastic_cross_size(); }
  uint32_t generation() const { return elastic_generation(); }
  std::string incarnation() const { return elastic_incarnation(); }

  // Connections of their own for collectives that run beside those of the runtime, in another
  // thread; by all ranks, anew in each generation (elastic_communicator_create).
  Status CreateCommunicator(Communicator* communicator, Timeout timeout = {}) {
    return Status::Of(elastic_communicator_create(&communicator->communicator_,
                                                  detail::CallOptions(timeout).get()));
  }

  // `next` becomes the committed state; read rank and size again afterwards (elastic_commit).
  Status Commit(uint64_t step, Timeout timeout = {}) {
    return Status::Of(elastic_commit(step, detail::CallOptions(timeout).get()));
  }

  // Asks all ranks to stop; from any thread. Every rank sees it in StopRequested after the same
  // commit, and then returns from its function (elastic_request_stop, elastic_stop_requested).
  Status RequestStop() { return Status::Of(elastic_request_stop()); }
  bool StopRequested() const { return elastic_stop_requested() != 0; }

  // Trains to the end: see elastic_run. `function` is called as Status(State<T>&), or as
  // Status(Items&) for state in the program's own memory.
  template <class AnyState, class Function>
  Status Run(AnyState& state, Function&& function) {
    struct Call {
      AnyState& state;
      std::remove_reference_t<Function>& function;
      Status answer;
    } call{state, function, Status()};
    const elastic_status status = elastic_run(
        [](void* user) -> elastic_status {
          auto& at = *static_cast<Call*>(user);
          at.answer = at.function(at.state);
          return static_cast<elastic_status>(at.answer.code());
        },
        &call);
    if (status == ELASTIC_OK) {
      return Status();
    }
    // The function's own error keeps its own text.
    const bool own = static_cast<Code>(status) == call.answer.code() && !call.answer.ok();
    return own ? call.answer : Status::Of(status);
  }

 private:
  std::function<void(Severity, std::string_view)> log_;
  bool initialised_ = false;
};

}  // namespace elastic

// Items: state in the program's own memory.
#include "elastic_state.h"  // IWYU pragma: export
