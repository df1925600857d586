/* A program in C99: the header compiles as C, and a world of one works from it. Exits with the
 * number of the first expectation that does not hold. */
#include <stdio.h>
#include <string.h>

#include "worker_runtime/elastic_c.h"

#define EXPECT(number, condition)                                               \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "expected: %s (%s)\n", #condition, elastic_last_error()); \
      return number;                                                            \
    }                                                                           \
  } while (0)

struct counter {
  int64_t value;
};

static elastic_status count_to_ten(void* user) {
  int* calls = user;
  ++*calls;
  while (((const struct counter*)elastic_state_current())->value < 10) {
    const struct counter* now = elastic_state_current();
    struct counter* next = elastic_state_next();
    int64_t one = 1;
    elastic_status status = elastic_allreduce(&one, &one, 1, ELASTIC_INT64, ELASTIC_SUM, NULL);
    if (status != ELASTIC_OK) {
      return status;
    }
    next->value = now->value + one;
    status = elastic_commit((uint64_t)next->value, NULL);
    if (status != ELASTIC_OK) {
      return status;
    }
  }
  return ELASTIC_OK;
}

int main(void) {
  int calls = 0;
  elastic_recovery_stamps stamps;
  memset(&stamps, 0, sizeof stamps);
  stamps.struct_size = sizeof stamps;
  EXPECT(1, elastic_init(NULL) == ELASTIC_OK);
  EXPECT(2, elastic_state_create(sizeof(struct counter)) == ELASTIC_OK);
  EXPECT(3, elastic_run(count_to_ten, &calls) == ELASTIC_OK);
  EXPECT(4, calls == 1);
  EXPECT(5, ((const struct counter*)elastic_state_current())->value == 10);
  EXPECT(6, elastic_committed_step() == 10);
  EXPECT(7, elastic_get_recovery_stamps(&stamps) == ELASTIC_OK && stamps.fenced_ns == 0);
  EXPECT(8, strcmp(elastic_status_name(ELASTIC_ABORTED), "ABORTED") == 0);
  EXPECT(9, strlen(elastic_version()) > 0);
  EXPECT(10, strcmp(elastic_incarnation(), "0.0") == 0);
  EXPECT(11, elastic_shutdown() == ELASTIC_OK);
  EXPECT(12, strcmp(elastic_incarnation(), "") == 0);
  return 0;
}
