#ifndef ELASTIC_C_H_
#define ELASTIC_C_H_

/* elastic_c.h: the C99 interface of libelastic, the worker runtime of elastic-run.
 *
 * The problem: a data-parallel program wants to go on in the same process when another worker is
 * lost or joins. The idea: the program keeps its training state in two buffers that the runtime
 * owns; it reads `current`, writes all of `next` and commits. When the membership changes, running
 * calls end with ELASTIC_ABORTED, `next` is dropped and the program's function is called again
 * with the newest state that any member has committed.
 *
 *   elastic_init(NULL);
 *   elastic_state_create(sizeof(struct model));
 *   ... fill elastic_state_current() with the initial model ...
 *   status = elastic_run(train, &context);    // train: compute, elastic_allreduce, elastic_commit
 *   elastic_shutdown();
 *
 * Threads: all calls are for one thread at a time, the program's own, unless a call says "any
 * thread". The runtime has one thread of its own ("elastic-runtime", all signals blocked); it
 * installs no handlers and prints nothing: its log lines go to the callback of
 * elastic_init_options. After fork() the child must not use the library: each of its calls
 * answers ELASTIC_FAILED_PRECONDITION and touches nothing, and however it ends the parent trains
 * on.
 *
 * Errors: a call answers with an elastic_status; elastic_last_error() has the text, which names
 * what was wanted, what was found and the remedy.
 *
 * Waiting: every blocking call takes an optional deadline, but for three. elastic_init waits for
 * its agent, at most 10 s. elastic_shutdown waits for the runtime's thread, which waits for nobody.
 * elastic_run trains to the end; while it waits for other workers the job's own limits hold
 * (--elastic-timeout, --start-timeout, --entry-timeout), and the job's end ends this process.
 *
 * Structs that are passed in begin with struct_size, which the caller sets to sizeof the struct:
 * a library of a later version knows by it which members an older program has.
 *
 * Source: rules P5-P8, P12, P25 and P29 of rendezvous/core/PROTOCOL.md. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ELASTIC_API __attribute__((visibility("default")))
#else
#define ELASTIC_API
#endif

/* Enumerations are 32 bits wide, and any value may be passed: an unknown one is an error. C++ needs
 * to be told; C compilers that this is for do so by themselves. */
#ifdef __cplusplus
#define ELASTIC_ENUM : int32_t
extern "C" {
#else
#define ELASTIC_ENUM
#endif

/* What the caller should do next. Numbers as in gRPC and Abseil where these have the same code. */
typedef enum elastic_status ELASTIC_ENUM {
  ELASTIC_OK = 0,
  ELASTIC_INVALID_ARGUMENT = 3,    /* the call can never work like this */
  ELASTIC_DEADLINE_EXCEEDED = 4,   /* the deadline that the call was given has passed */
  ELASTIC_RESOURCE_EXHAUSTED = 8,  /* a limit or the memory is used up */
  ELASTIC_FAILED_PRECONDITION = 9, /* wrong order of calls or set-up; the text names the remedy */
  ELASTIC_ABORTED = 10,            /* this generation is over: return from the run function, or
                                      call elastic_join again */
  ELASTIC_INTERNAL = 13,           /* a bug of the runtime or of the program's commits */
  ELASTIC_UNAVAILABLE = 14,        /* the agent cannot be reached */
  ELASTIC_DATA_LOSS = 15,          /* bytes that do not match their checksum */
  ELASTIC_NOT_A_MEMBER = 64,       /* called before elastic_join or outside elastic_run */
  ELASTIC_FINISHED = 65 /* the job is finished or does not need this process: exit with 0 */
} elastic_status;

/* Name of a status, as `ABORTED`. Never NULL; static memory; any thread. */
ELASTIC_API const char* elastic_status_name(elastic_status status);

/* Text of the newest error in the calling thread, "" if there was none. Valid until the next call
 * of the library in that thread. Any thread. */
ELASTIC_API const char* elastic_last_error(void);

/* Status of the newest call of the library in the calling thread. Any thread. */
ELASTIC_API elastic_status elastic_last_status(void);

/* Version of the library as `0.1.0`. Static memory; any thread. */
ELASTIC_API const char* elastic_version(void);

/* ---- start and end ------------------------------------------------------------------------- */

/* Of a log line. */
typedef enum elastic_severity ELASTIC_ENUM {
  ELASTIC_DEBUG = 0,
  ELASTIC_INFO = 1,
  ELASTIC_WARNING = 2,
  ELASTIC_ERROR = 3
} elastic_severity;

/* Receives one log line without its newline. Called from any thread, one call at a time; must not
 * call the library. `line` is valid during the call only. */
typedef void (*elastic_log_function)(void* user, elastic_severity severity, const char* line);

/* How the runtime logs. */
typedef struct elastic_init_options {
  size_t struct_size;
  elastic_log_function log;       /* may be NULL: log lines are dropped */
  void* log_user;                 /* handed to `log` */
  elastic_severity log_threshold; /* lines below it are dropped */
} elastic_init_options;

/* Connects this process to its agent; never waits for other workers. `options` may be NULL.
 *
 * A process without ELASTIC_AGENT_SOCKET and ELASTIC_JOB_ID in its environment becomes a world of
 * one: every call works, size is 1, nothing is connected. With either of them set it is part of a
 * job, and init fails rather than train alone when the agent cannot be reached: print
 * elastic_last_error() and exit with 2.
 *
 * Errors: FAILED_PRECONDITION when called twice, when the environment is incomplete or when the
 * agent refuses this process; UNAVAILABLE when the agent's socket cannot be reached;
 * INVALID_ARGUMENT for a struct_size that this version does not know. */
ELASTIC_API elastic_status elastic_init(const elastic_init_options* options);

/* Ends the runtime: joins its thread and unmaps the state, so pointers from elastic_state_current
 * and _next become invalid. After elastic_run has returned OK, or before elastic_join, this leaves
 * the job in order. In mid-training it counts as the loss of this worker, and the process has
 * --grace-period to exit by itself with its own exit code.
 *
 * Errors: FAILED_PRECONDITION without elastic_init. */
ELASTIC_API elastic_status elastic_shutdown(void);

/* ---- membership ---------------------------------------------------------------------------- */

/* One generation as seen by this member. Ranks and sizes as in Horovod. */
typedef struct elastic_membership {
  size_t struct_size;
  uint32_t generation;  /* grows with every change of the membership; from 1 */
  int32_t rank;         /* 0 .. size-1 */
  int32_t size;         /* number of workers */
  int32_t local_rank;   /* the slot on this host; constant for the life of the process */
  int32_t local_size;   /* members on this host */
  int32_t cross_rank;   /* index among the hosts that have this local_rank */
  int32_t cross_size;   /* number of those hosts */
  int32_t local_index;  /* dense index among the members of this host, 0 .. local_size-1 */
  int32_t local_leader; /* 1 for the first member of a host, else 0 */
} elastic_membership;

/* Deadline of a blocking call, and where a collective runs. NULL instead of a pointer to it: none.
 */
typedef struct elastic_call_options {
  size_t struct_size;
  int64_t timeout_ns;   /* from the call on, nanoseconds, > 0; 0: no deadline */
  int32_t communicator; /* of a collective: from elastic_communicator_create; 0: the world's own */
} elastic_call_options;

/* Declares that this process is ready and waits until it is a member of a generation and has the
 * state to go on from: the first members take rank 0's initial state as version 0, later ones and
 * survivors of a loss the newest committed one. After ELASTIC_ABORTED, call it again to enter the
 * next generation. `membership` and `options` may be NULL. elastic_run calls this itself.
 *
 * Errors: FINISHED when the job has ended, or goes on without this process: exit with 0;
 * FAILED_PRECONDITION without elastic_init or inside elastic_run; DEADLINE_EXCEEDED (the
 * declaration stands; call again, but exit if it comes at once, because the first members were
 * already sharing rank 0's state); INVALID_ARGUMENT when the state of the job does not fit this
 * program (other sizes or items); INTERNAL, also when no holder gave its state. */
ELASTIC_API elastic_status elastic_join(elastic_membership* membership,
                                        const elastic_call_options* options);

/* The membership that this process computes in. Errors: NOT_A_MEMBER before elastic_join;
 * INVALID_ARGUMENT for NULL or an unknown struct_size. */
ELASTIC_API elastic_status elastic_get_membership(elastic_membership* membership);

/* Members of elastic_get_membership one by one; -1 with NOT_A_MEMBER as the last status. They keep
 * the values of the newest generation after elastic_run has returned, and are -1 in a process that
 * was told to leave before it became a member. */
ELASTIC_API int32_t elastic_rank(void);
ELASTIC_API int32_t elastic_size(void);
ELASTIC_API int32_t elastic_local_rank(void);
ELASTIC_API int32_t elastic_local_size(void);
ELASTIC_API int32_t elastic_cross_rank(void);
ELASTIC_API int32_t elastic_cross_size(void);
/* Number of the generation; 0 with NOT_A_MEMBER as the last status. */
ELASTIC_API uint32_t elastic_generation(void);

/* Pid-like name of this process within the job, `agent.counter` as in `3.12`; `0.0` in a world of
 * one; "" without elastic_init. Never reused within a job. Static memory until elastic_shutdown. */
ELASTIC_API const char* elastic_incarnation(void);

/* ---- state --------------------------------------------------------------------------------- */

/* Makes the two buffers of `bytes` bytes each, zeroed, in memory that outlives this process (so
 * that a dead worker's committed state can still be served). Once per process, after elastic_init
 * and before elastic_join; the same size in all workers. Programs without state need not call it.
 * The runtime owns the buffers. Alignment: 4096.
 *
 * Errors: FAILED_PRECONDITION when called twice or too late; INVALID_ARGUMENT for 0 or more than
 * 2^42 bytes; RESOURCE_EXHAUSTED when the memory is not there. */
ELASTIC_API elastic_status elastic_state_create(size_t bytes);

/* The newest committed state, `bytes` bytes; NULL without elastic_state_create. The pointer changes
 * with every commit and restore. Writable only before the first elastic_join or elastic_run, to
 * hold the initial state. */
ELASTIC_API void* elastic_state_current(void);

/* The state being computed: write all of it before elastic_commit. Its contents after a commit or
 * a restore are old. NULL without elastic_state_create. */
ELASTIC_API void* elastic_state_next(void);

/* Makes `next` the committed state on this rank; the buffers change places (items in place: copies
 * them). All ranks call it equally often, at points where `next` is equal on all of them. `step` is
 * a label for people, the same on all ranks. It waits for the other ranks to have reached their
 * commit before this one, so ranks differ by at most one commit. A returned commit survives the
 * loss of any other workers. The membership may have grown when it returns: read rank and size
 * again after each commit.
 *
 * Errors: ABORTED when the generation is over (`next` did not become committed); NOT_A_MEMBER;
 * DEADLINE_EXCEEDED, after which this member cannot go on: exit; INVALID_ARGUMENT when ranks have
 * committed unequally often or with different steps, which ends the job (the next collective may be
 * what finds it). The text names both ranks and both steps. */
ELASTIC_API elastic_status elastic_commit(uint64_t step, const elastic_call_options* options);

/* Asks the whole job to stop, from any rank: every rank sees it in elastic_stop_requested after the
 * same commit. Never waits. Any thread, but not from a signal handler: set a flag there. An
 * operator's stop (a signal to elastic-run) asks the same way, besides the SIGTERM that each
 * process gets; a process that is in no generation then leaves at once: elastic_run answers OK,
 * elastic_join FINISHED.
 *
 * Errors: FAILED_PRECONDITION without elastic_init. */
ELASTIC_API elastic_status elastic_request_stop(void);

/* 1 when an elastic_commit that has returned OK carried somebody's wish to stop: on all ranks after
 * the same commit. The program then returns OK from its function, or calls elastic_finish, and so
 * ends the job with the state of that commit. 0 otherwise, and again after a restore until the next
 * commit, since members that were behind have not seen it. Nobody joins the job after it. */
ELASTIC_API int32_t elastic_stop_requested(void);

/* Step label of the newest committed state; 0 when there is none yet (version 0 has label 0). */
ELASTIC_API uint64_t elastic_committed_step(void);

/* ---- collectives --------------------------------------------------------------------------- */

/* Of the elements of a reduction; memory is in the machine's byte order. */
typedef enum elastic_data_type ELASTIC_ENUM {
  ELASTIC_FLOAT32 = 1,
  ELASTIC_FLOAT64 = 2,
  ELASTIC_INT64 = 3,
  ELASTIC_INT32 = 4,
  ELASTIC_UINT8 = 5
} elastic_data_type;

/* How a reduction combines the ranks' values, element by element. */
typedef enum elastic_reduce_op ELASTIC_ENUM {
  ELASTIC_SUM = 1,
  ELASTIC_AVERAGE = 2, /* the sum divided by size; integers truncate; not for UINT8 */
  ELASTIC_MIN = 3,
  ELASTIC_MAX = 4,
  ELASTIC_PRODUCT = 5 /* as in sums, integers wrap around */
} elastic_reduce_op;

/* All of them: every rank calls them in the same order with equal counts, which may be 0; results
 * are bit-identical on all ranks; memory is the caller's. They block until complete on this rank.
 *
 * Errors: ABORTED when the generation is over (`out` is then undefined); NOT_A_MEMBER;
 * FAILED_PRECONDITION after the end of the job; INVALID_ARGUMENT for wrong arguments, before a byte
 * is sent, or when the ranks turn out to make different calls; DEADLINE_EXCEEDED. After these two
 * this member cannot go on: exit. */

/* Reduces `count` elements of `in` over all ranks into `out` of every rank; may be the same. */
ELASTIC_API elastic_status elastic_allreduce(const void* in, void* out, size_t count,
                                             elastic_data_type type, elastic_reduce_op op,
                                             const elastic_call_options* options);

/* Copies `bytes` bytes at `data` from rank `root` to all. */
ELASTIC_API elastic_status elastic_broadcast(void* data, size_t bytes, int32_t root,
                                             const elastic_call_options* options);

/* Collects `bytes` bytes of every rank: `out` has size * bytes bytes, rank r's at r * bytes. */
ELASTIC_API elastic_status elastic_allgather(const void* in, void* out, size_t bytes,
                                             const elastic_call_options* options);

/* The same with parts of any sizes, also 0: rank r's has bytes_of[r] bytes and lies in `out` behind
 * those of the ranks before it. `bytes_of`: size numbers, the same on all ranks. */
ELASTIC_API elastic_status elastic_allgatherv(const void* in, void* out, const size_t* bytes_of,
                                              const elastic_call_options* options);

/* Reduces size * count elements of `in` over all ranks; rank r gets part r, `count` elements, in
 * `out`, which may be that part of `in`. */
ELASTIC_API elastic_status elastic_reduce_scatter(const void* in, void* out, size_t count,
                                                  elastic_data_type type, elastic_reduce_op op,
                                                  const elastic_call_options* options);

/* Returns when every rank has called it. */
ELASTIC_API elastic_status elastic_barrier(const elastic_call_options* options);

/* Makes connections of their own between all ranks, for collectives that run beside others: those
 * on different communicators may run at one time, each in one thread. Every rank creates them in
 * the same order; a number is valid in the generation it was made in, also after a commit that has
 * let nobody in, and collectives on it answer ABORTED or INVALID_ARGUMENT afterwards. At most 64 in
 * a generation. They do not count as the collectives that commits go by (elastic_commit).
 *
 * Errors: ABORTED; NOT_A_MEMBER; INVALID_ARGUMENT for NULL; RESOURCE_EXHAUSTED; DEADLINE_EXCEEDED,
 * after which this member cannot go on: exit. */
ELASTIC_API elastic_status elastic_communicator_create(int32_t* communicator,
                                                       const elastic_call_options* options);

/* ---- run ----------------------------------------------------------------------------------- */

/* Trains from elastic_state_current() to the end. Returns ELASTIC_OK when training is done,
 * ELASTIC_ABORTED when a call answered so, anything else to give up. */
typedef elastic_status (*elastic_function)(void* user);

/* Joins, calls `function`, and calls it again with the committed state (`next` dropped) in each
 * generation that follows a loss; growth happens inside elastic_commit and does not end the call.
 * When `function` returns OK, reports finished and returns once all members of one generation have
 * done so with the same state (P29); a loss before that calls `function` again with the final
 * state, which must then return OK at once.
 *
 * Returns OK when the job is finished, and also when this process was told to leave because it is
 * not needed any more (elastic_rank() is -1 if it was never a member): exit with 0 in both cases.
 * Errors: what `function` returned, other than OK and ABORTED; those of elastic_join. */
ELASTIC_API elastic_status elastic_run(elastic_function function, void* user);

/* The end of a program with its own loop: reports that training is done in the newest committed
 * state and waits until all members have. OK: the job is finished, exit with 0. elastic_run calls
 * this itself. Errors: ABORTED when a member was lost before: call elastic_join again;
 * NOT_A_MEMBER; DEADLINE_EXCEEDED (the report stands; call again). */
ELASTIC_API elastic_status elastic_finish(const elastic_call_options* options);

/* ---- measuring ----------------------------------------------------------------------------- */

/* When the newest recovery of this worker passed its stations, in nanoseconds of CLOCK_BOOTTIME;
 * 0: not yet. */
typedef struct elastic_recovery_stamps {
  size_t struct_size;
  int64_t fenced_ns;      /* the agent fenced this worker's commit word */
  int64_t bell_heard_ns;  /* the runtime noticed */
  int64_t roster_came_ns; /* the successor generation is known */
  int64_t edges_up_ns;    /* all connections to the other members stand */
  int64_t restored_ns;    /* the committed state is in place */
} elastic_recovery_stamps;

/* Errors: INVALID_ARGUMENT for NULL or an unknown struct_size; FAILED_PRECONDITION without
 * elastic_init. All zero in a world of one. Any thread. */
ELASTIC_API elastic_status elastic_get_recovery_stamps(elastic_recovery_stamps* stamps);

#undef ELASTIC_ENUM
#ifdef __cplusplus
} /* extern "C" */
#endif

/* register, resize, unregister: state in the program's own memory. */
#include "elastic_state_c.h"
/* poll, event_fd, members, put and get. */
#include "elastic_loop_c.h"

#endif /* ELASTIC_C_H_ */
