/* A user's whole program in C99: the ranks add up ones until the sum is 100. */
#include <elastic/elastic_c.h>
#include <stdio.h>

struct counter {
  int64_t value;
};

static elastic_status count(void* unused) {
  (void)unused;
  while (((const struct counter*)elastic_state_current())->value < 100) {
    struct counter* next = elastic_state_next();
    int64_t one = 1;
    elastic_status status = elastic_allreduce(&one, &one, 1, ELASTIC_INT64, ELASTIC_SUM, NULL);
    if (status != ELASTIC_OK) {
      return status;
    }
    next->value = ((const struct counter*)elastic_state_current())->value + one;
    status = elastic_commit((uint64_t)next->value, NULL);
    if (status != ELASTIC_OK) {
      return status;
    }
  }
  return ELASTIC_OK;
}

int main(void) {
  if (elastic_init(NULL) != ELASTIC_OK ||
      elastic_state_create(sizeof(struct counter)) != ELASTIC_OK ||
      elastic_run(count, NULL) != ELASTIC_OK) {
    fprintf(stderr, "%s\n", elastic_last_error());
    return 2;
  }
  printf("rank %d of %d counted to %lld\n", (int)elastic_rank(), (int)elastic_size(),
         (long long)((const struct counter*)elastic_state_current())->value);
  return elastic_shutdown() == ELASTIC_OK ? 0 : 2;
}
