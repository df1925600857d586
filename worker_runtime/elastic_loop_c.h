#ifndef ELASTIC_LOOP_C_H_
#define ELASTIC_LOOP_C_H_

/* elastic_loop_c.h: the calls for a program with a loop of its own, and for one that brings its
 * own communication (NCCL, UCX, sockets). Part of elastic_c.h, which includes it.
 *
 *   elastic_init(NULL);
 *   elastic_state_create(sizeof(struct model));  ... fill elastic_state_current() ...
 *   while (!finished) {
 *     elastic_join(NULL, NULL);                  // a member now, with the state to go on from
 *     for (;;) {
 *       if (elastic_poll(&event) != ELASTIC_OK || event == ELASTIC_RESTORE) break;
 *       if (event == ELASTIC_REFORMED) ... rank and size have changed: rebuild what depends on them
 *       ... one step: read current, compute, write all of next ...
 *       if (elastic_commit(step, NULL) != ELASTIC_OK) break;
 *     }
 *     ... at the end: finished = elastic_finish(NULL) == ELASTIC_OK ...
 *   }
 *
 * A program with its own communication calls init, join, poll, get_members, put, get, commit and
 * finish, and none of the collectives: the runtime then agrees on its commits by 8 bytes of its
 * own. It must end what it is blocked in when elastic_event_fd becomes readable and elastic_poll
 * answers ELASTIC_RESTORE: a peer is lost, and nobody else will end that wait.
 *
 * Source: rules P6, P24 and P25 of rendezvous/core/PROTOCOL.md. */

#include "elastic_c.h"

#ifdef __cplusplus
#define ELASTIC_INT32 : int32_t
extern "C" {
#else
#define ELASTIC_INT32
#endif

/* Where this process stands in the job. */
typedef enum elastic_standing ELASTIC_INT32 {
  ELASTIC_STANDING_NONE = 0,     /* no elastic_init in this process (the last status says why) */
  ELASTIC_STANDING_STARTING = 1, /* has not declared readiness: elastic_join was never called */
  ELASTIC_STANDING_WAITING = 2,  /* declared, and in no generation that goes on: elastic_join */
  ELASTIC_STANDING_MEMBER = 3,   /* computes in a generation */
  ELASTIC_STANDING_FINISHED = 4  /* the job is finished or goes on without it: exit with 0 */
} elastic_standing;

/* Never waits. ELASTIC_STANDING_NONE with FAILED_PRECONDITION as the last status without
 * elastic_init and in a forked child. */
ELASTIC_API elastic_standing elastic_get_standing(void);

/* What has happened, and what the program does next. */
typedef enum elastic_event ELASTIC_INT32 {
  /* Nothing: go on. */
  ELASTIC_CONTINUE = 0,
  /* At the newest elastic_commit this process moved into a new generation, without a loss: workers
   * have joined or left. Its state is the one committed there, and it goes on with the next step.
   * Before that, what depends on rank, size or members (shares of the data, communicators) is made
   * anew. Told once; elastic_commit is the only call during which it happens. */
  ELASTIC_REFORMED = 1,
  /* The generation is over: a member was lost, or this process is not needed any more. Everything
   * since the newest commit is dropped. Call elastic_join, which gives the next generation and the
   * state to go on from, or ELASTIC_FINISHED. Told until then. */
  ELASTIC_RESTORE = 2,
  /* Others wait for a commit: newcomers that are ready, or somebody who wants the job to stop. Only
   * advice, for programs that commit seldom, and ranks do not hear it at the same time: since all
   * ranks commit equally often, they agree first (an allreduce of this flag, say). It takes up to
   * two commits until the others are in, or all know of the stop. Told until then. */
  ELASTIC_COMMIT_WANTED = 3,
  /* The newest elastic_commit was the last: on all ranks the same one carried somebody's wish to
   * stop (elastic_stop_requested). Call elastic_finish, which ends the job with that state. Told
   * until then. */
  ELASTIC_STOP_AT = 4
} elastic_event;

/* Says what has happened since. Never blocks; cheap enough for every step. Where more than one
 * thing has happened: RESTORE before REFORMED before STOP_AT before COMMIT_WANTED.
 *
 * Errors: NOT_A_MEMBER before elastic_join has returned OK; INVALID_ARGUMENT for NULL; INTERNAL and
 * others when this member cannot go on (the text says why): exit. */
ELASTIC_API elastic_status elastic_poll(elastic_event* event);

/* A descriptor for poll() or epoll: readable as long as elastic_poll would answer with an error,
 * ELASTIC_RESTORE, ELASTIC_REFORMED or ELASTIC_STOP_AT, and from the moment at which a commit is
 * wanted until elastic_poll has said so. The library's: do not read, write or close it. Valid until
 * elastic_shutdown. -1 on errors, as the last status: FAILED_PRECONDITION without elastic_init;
 * RESOURCE_EXHAUSTED without free descriptors. */
ELASTIC_API int elastic_event_fd(void);

/* One member of the generation. */
typedef struct elastic_member {
  size_t struct_size;      /* see elastic_get_members */
  int32_t rank;            /* 0 .. size-1 */
  int32_t previous_rank;   /* in the generation before; -1: a newcomer */
  int32_t slot;            /* its local_rank on its host */
  int32_t port;            /* of the runtime's own data connections; 0 in a world of one */
  const char* host;        /* name as in -H */
  const char* address;     /* numeric, IPv4 or IPv6: where that host is reached */
  const char* incarnation; /* as elastic_incarnation there */
} elastic_member;

/* All members of the generation that elastic_get_membership tells of, in rank order. `*count`
 * becomes their number; with `capacity` 0 nothing else is written. The caller sets struct_size of
 * the first element, which is also the distance between elements. The text is the library's, valid
 * until the next call of this function or elastic_shutdown.
 *
 * Errors: NOT_A_MEMBER; INVALID_ARGUMENT for NULL, an unknown struct_size, or too small a
 * `capacity` (`*count` is right then). */
ELASTIC_API elastic_status elastic_get_members(elastic_member* members, size_t capacity,
                                               size_t* count);

/* Leaves `bytes` bytes (at most 65536) under `key` (1 to 255 characters) for the other members of
 * this generation, and waits until the server has them. Lives and dies with the generation: the
 * next one begins empty, at a commit boundary too. For what is small and needed once, such as an
 * NCCL id: together at most 4096 keys and 1 MiB of keys and values a generation.
 *
 * A value never changes: putting the same bytes again is no error.
 *
 * Errors: ABORTED when the generation is over; NOT_A_MEMBER; INVALID_ARGUMENT when other bytes
 * stand there, or for a key or value that is too long; RESOURCE_EXHAUSTED when the generation's
 * limit is reached; DEADLINE_EXCEEDED (it may yet be put; call again). */
ELASTIC_API elastic_status elastic_put(const char* key, const void* value, size_t bytes,
                                       const elastic_call_options* options);

/* Waits until a member of this generation has put `key`, and copies its value. `*bytes` is the size
 * of the buffer, and afterwards that of the value.
 *
 * Errors: ABORTED when the generation is over; NOT_A_MEMBER; INVALID_ARGUMENT when the buffer is
 * too small (`*bytes` has the size; call again), or for a key that is too long;
 * FAILED_PRECONDITION for a key that nobody can put (world of one); DEADLINE_EXCEEDED. */
ELASTIC_API elastic_status elastic_get(const char* key, void* value, size_t* bytes,
                                       const elastic_call_options* options);

#undef ELASTIC_INT32
#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ELASTIC_LOOP_C_H_ */
