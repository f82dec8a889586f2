#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What memprof's extension module calls of a library that records libtorch, or simulates it. Plain C, so that one library serves
 * every version of Python, and either kind of std::string. */

#define MEMPROF_TORCH_CALLS_VERSION 10

/* A model of the claimed device's allocator: memprof::detail::device_allocator. */
struct memprof_torch_allocator {
  void* self;
  bool (*has_room)(void* self, int64_t bytes, bool is_backward, char* message, size_t room, int64_t* free_bytes);
  uint32_t (*allocate)(void* self, const void* address, int64_t bytes, bool is_backward);
  uint32_t (*deallocate)(void* self, const void* address);
  uint64_t (*stream)(void* self);
  bool (*try_to_wait)(void* self);
  void (*add_work)(void* self);
};

enum memprof_torch_knowledge {
  memprof_torch_known,
  memprof_torch_unknown,
  memprof_torch_uniform_draw /* unknown, but drawn between 0 and 1 */
};

struct memprof_torch_simulation {
  /* From `enter` to `leave`, this thread's operations are executed. */
  void (*enter_real_scope)(void);
  void (*leave_real_scope)(void);
  /* This thread's operations are simulated from now on, if those of the one that began the capture are. */
  void (*join)(void);
  /* In a forked process that loads data: operations are executed from now on, also on simulated tensors. */
  void (*execute_in_this_process)(void);
  /* Tells the model of each block of the claimed device from now on, and asks it for room: without, there is always some. Null:
   * no longer. */
  void (*use_allocator)(const struct memprof_torch_allocator* model);
  /* Before `method` reads the memory of a tensor (`Tensor._cdata`) on the CPU: what the simulation does not know of it becomes
   * nominal, and the read is listed. False if the program seems to wait for such a value, and what to say in `error`, of `room`
   * bytes. */
  bool (*read_memory)(void* tensor, const char* method, char* error, size_t room);
  /* `memprof::set_torch_read_limit`; at least 1. */
  void (*set_read_limit)(int64_t reads);
  /* What a read of a tensor (`Tensor._cdata`) gives. */
  enum memprof_torch_knowledge (*knowledge_of)(void* tensor);
  /* From `begin_print` to `end_print`, what this thread reads is printed; pairs nest. */
  void (*begin_print)(void);
  void (*end_print)(void);
  /* Lists that the program decides by a number that it has read before; `decision` says what it asks of it, and where. */
  void (*list_decision)(const char* decision);
  /* Frees cuBLAS's workspaces, which are made anew where they are needed. */
  void (*clear_workspaces)(void);
  /* `UntypedStorage.resize_` of a storage (`UntypedStorage._cdata`) of simulated tensors. False if that is not possible, and what
   * to say in `error`, of `room` bytes. */
  bool (*resize_storage)(void* storage, int64_t bytes, char* error, size_t room);
};

struct memprof_torch_calls {
  unsigned version;          /* MEMPROF_TORCH_CALLS_VERSION of the library */
  const char* torch_version; /* that the library was compiled for: "2.13.0" */

  /* A source that records until `detach`; on failure null, and the reason in `error`, of `room` bytes. `device` points to the
   * capture's memprof::device_description, plain bytes of a size that both sides check. */
  void* (*attach)(const void* device, size_t device_bytes, char* error, size_t room);
  /* Records the tensors on CUDA devices, too, once libtorch has initialised CUDA; a second call does nothing. Null in a library
   * that was compiled without CUDA. */
  void (*attach_cuda)(void* source);
  void (*detach)(void* source);
  void (*report_facts)(void* source);
  void (*destroy)(void* source);

  /* Describes the block of a tensor (`Tensor._cdata`). A parameter's gradients, present and future, are described with it. */
  void (*annotate)(void* tensor, const char* name, unsigned category);

  /* Has blocks be recorded with the label that `caller` returns for their size, in the thread that allocates them: the name of a
   * stack, or 0. Null: no longer. */
  void (*name_callers)(uint32_t (*caller)(size_t bytes));

  /* Counts operators from one call to the other (`memprof::track_pytorch_ops`); pairs nest. */
  void (*begin_operators)(void);
  void (*end_operators)(void);

  /* Null in a library that records. */
  const struct memprof_torch_simulation* simulation;
};

/* The only symbol of the library. */
typedef const struct memprof_torch_calls* memprof_torch_function(void);
