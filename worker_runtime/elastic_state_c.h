#ifndef ELASTIC_STATE_C_H_
#define ELASTIC_STATE_C_H_

/* elastic_state_c.h: state that stays in the program's own memory (tensors of a framework) and is
 * changed in place. Part of elastic_c.h, which includes it.
 *
 *   elastic_init(NULL);
 *   elastic_register("weights", weights, weights_bytes, NULL);
 *   elastic_register("momentum", momentum, momentum_bytes, NULL);
 *   status = elastic_run(train, &context);    // train: compute, change the items, elastic_commit
 *
 * elastic_commit copies all items into memory of the runtime's that outlives this process; a
 * restore, inside elastic_join or elastic_run, copies the newest committed copy back. The price
 * over the two buffers of elastic_state_create is that copy, at each commit and at each restore;
 * a process uses one of the two ways.
 *
 * Names and sizes are part of the state: all ranks register, resize and unregister the same between
 * the same two commits, in any order. These calls take effect with the next elastic_commit, and a
 * restore takes them back: the items are again those of the committed state, each where it was
 * then. So memory that was replaced by elastic_resize or given up by elastic_unregister must stay
 * valid until the next elastic_commit has returned, unless the item has a resize function.
 *
 * A process that joins a running job, or is behind, gets items of the job's sizes. Where a size is
 * not the registered one the item's resize function is called; without one elastic_join fails. An
 * item that will come later in training is registered from the start, with 0 bytes and a resize
 * function.
 *
 * No other thread may change the items during elastic_commit, elastic_join and elastic_run's
 * pauses between two calls of its function.
 *
 * Source: rules P5 and P8 of rendezvous/core/PROTOCOL.md. */

#include "elastic_c.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Gives memory for item `name` in `bytes` bytes, contents undefined; NULL: there is none, and the
 * restore fails. With 0 bytes the committed state has no bytes of this item, or no such item, which
 * then is not registered any more; the answer is ignored. Called in the program's thread, inside
 * elastic_join or elastic_run; must not call the library. */
typedef void* (*elastic_resize_function)(void* user, const char* name, size_t bytes);

/* How an item takes the size that the committed state has. */
typedef struct elastic_register_options {
  size_t struct_size;
  elastic_resize_function resize; /* may be NULL: the size must always be the registered one */
  void* user;                     /* handed to `resize` */
} elastic_register_options;

/* Makes `bytes` bytes at `memory` a piece of the state under `name`, 1 to 127 bytes of text. The
 * memory stays the caller's; NULL is allowed for 0 bytes. After elastic_init; the first item before
 * elastic_join or elastic_run. `options` may be NULL.
 *
 * Errors: INVALID_ARGUMENT for the name, NULL memory or an unknown struct_size;
 * FAILED_PRECONDITION for a name that is registered, after elastic_state_create, or when the job
 * was joined without items; RESOURCE_EXHAUSTED for more than 65536 items. */
ELASTIC_API elastic_status elastic_register(const char* name, void* memory, size_t bytes,
                                            const elastic_register_options* options);

/* The item lies at `memory` from now on and has `bytes` bytes: for a new size or a new place.
 * Errors: INVALID_ARGUMENT for an unknown name or NULL memory. */
ELASTIC_API elastic_status elastic_resize(const char* name, void* memory, size_t bytes);

/* The item is no piece of the state any more. Errors: INVALID_ARGUMENT for an unknown name. */
ELASTIC_API elastic_status elastic_unregister(const char* name);

/* Where the item lies at present and its size; both pointers may be NULL. After a restore these may
 * be those of before an elastic_resize. Errors: INVALID_ARGUMENT for an unknown name. */
ELASTIC_API elastic_status elastic_registered(const char* name, void** memory, size_t* bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ELASTIC_STATE_C_H_ */
