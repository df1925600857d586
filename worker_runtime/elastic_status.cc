#include "worker_runtime/elastic_c.h"

extern "C" {

const char* elastic_status_name(elastic_status status) {
  switch (status) {
    case ELASTIC_OK: return "OK";
    case ELASTIC_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
    case ELASTIC_DEADLINE_EXCEEDED: return "DEADLINE_EXCEEDED";
    case ELASTIC_RESOURCE_EXHAUSTED: return "RESOURCE_EXHAUSTED";
    case ELASTIC_FAILED_PRECONDITION: return "FAILED_PRECONDITION";
    case ELASTIC_ABORTED: return "ABORTED";
    case ELASTIC_INTERNAL: return "INTERNAL";
    case ELASTIC_UNAVAILABLE: return "UNAVAILABLE";
    case ELASTIC_DATA_LOSS: return "DATA_LOSS";
    case ELASTIC_NOT_A_MEMBER: return "NOT_A_MEMBER";
    case ELASTIC_FINISHED: return "FINISHED";
  }
  return "UNKNOWN";
}

}  // extern "C"
