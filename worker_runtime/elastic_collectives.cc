// The collectives of elastic_c.h: arguments are checked here, before a byte is sent.
#include <vector>

#include "rendezvous/base/log.h"
#include "worker_runtime/c_border.h"

namespace {

using elastic::internal::InvalidArgumentError;
using elastic::internal::OkStatus;
using elastic::internal::Session;
using elastic::internal::Status;
using elastic::internal::StrCat;
using namespace elastic::internal::border;

// A program that was built before there were communicators has shorter options.
int CommunicatorOf(const elastic_call_options* options) {
  return options != nullptr && options->struct_size >= sizeof(elastic_call_options)
             ? options->communicator
             : 0;
}

template <class Operation>
elastic_status Collective(const char* name, const elastic_call_options* options,
                          Operation operation) {
  return AsMember(name, options, [&](Session::Deadline deadline) -> Status {
    return operation(Session::Call{deadline, CommunicatorOf(options)});
  });
}

Status CheckBuffers(const char* name, const void* in, const void* out, size_t count) {
  return count > 0 && (in == nullptr || out == nullptr)
             ? InvalidArgumentError(StrCat(name, ": NULL buffer"))
             : OkStatus();
}

Status CheckReduction(const char* name, elastic_data_type type, elastic_reduce_op op) {
  if (type < ELASTIC_FLOAT32 || type > ELASTIC_UINT8) {
    return InvalidArgumentError(StrCat(name, ": unknown data type ", static_cast<int>(type)));
  }
  if (op < ELASTIC_SUM || op > ELASTIC_PRODUCT) {
    return InvalidArgumentError(StrCat(name, ": unknown operation ", static_cast<int>(op)));
  }
  return OkStatus();
}

// Of a program that knows its generation's size.
size_t Size() { return static_cast<size_t>(process.session->membership()->place.size); }

}  // namespace

extern "C" {

elastic_status elastic_communicator_create(int32_t* communicator,
                                           const elastic_call_options* options) {
  return AsMember("elastic_communicator_create", options,
                  [&](Session::Deadline deadline) -> Status {
                    if (communicator == nullptr) {
                      return InvalidArgumentError(
                          "elastic_communicator_create: NULL instead of a place for its number");
                    }
                    ASSIGN_OR_RETURN(*communicator, process.session->CreateCommunicator(deadline));
                    return OkStatus();
                  });
}

elastic_status elastic_allreduce(const void* in, void* out, size_t count, elastic_data_type type,
                                 elastic_reduce_op op, const elastic_call_options* options) {
  return Collective("elastic_allreduce", options, [&](const Session::Call& call) -> Status {
    RETURN_IF_ERROR(CheckReduction("elastic_allreduce", type, op));
    RETURN_IF_ERROR(CheckBuffers("elastic_allreduce", in, out, count));
    return process.session->AllReduce(in, out, count,
                                      static_cast<elastic::internal::DataType>(type),
                                      static_cast<elastic::internal::ReduceOp>(op), call);
  });
}

elastic_status elastic_reduce_scatter(const void* in, void* out, size_t count,
                                      elastic_data_type type, elastic_reduce_op op,
                                      const elastic_call_options* options) {
  return Collective("elastic_reduce_scatter", options, [&](const Session::Call& call) -> Status {
    RETURN_IF_ERROR(CheckReduction("elastic_reduce_scatter", type, op));
    RETURN_IF_ERROR(CheckBuffers("elastic_reduce_scatter", in, out, count));
    return process.session->ReduceScatter(in, out, count,
                                          static_cast<elastic::internal::DataType>(type),
                                          static_cast<elastic::internal::ReduceOp>(op), call);
  });
}

elastic_status elastic_broadcast(void* data, size_t bytes, int32_t root,
                                 const elastic_call_options* options) {
  return Collective("elastic_broadcast", options, [&](const Session::Call& call) -> Status {
    RETURN_IF_ERROR(CheckBuffers("elastic_broadcast", data, data, bytes));
    return process.session->Broadcast(data, bytes, root, call);
  });
}

elastic_status elastic_allgather(const void* in, void* out, size_t bytes,
                                 const elastic_call_options* options) {
  return Collective("elastic_allgather", options, [&](const Session::Call& call) -> Status {
    RETURN_IF_ERROR(CheckBuffers("elastic_allgather", in, out, bytes));
    return process.session->AllGather(in, out, std::vector<size_t>(Size(), bytes), call);
  });
}

elastic_status elastic_allgatherv(const void* in, void* out, const size_t* bytes_of,
                                  const elastic_call_options* options) {
  return Collective("elastic_allgatherv", options, [&](const Session::Call& call) -> Status {
    if (bytes_of == nullptr) {
      return InvalidArgumentError(
          "elastic_allgatherv: NULL instead of the number of bytes of each rank");
    }
    return process.session->AllGather(in, out, std::span(bytes_of, Size()), call);
  });
}

elastic_status elastic_barrier(const elastic_call_options* options) {
  return Collective("elastic_barrier", options, [](const Session::Call& call) -> Status {
    return process.session->Barrier(call);
  });
}

}  // extern "C"
