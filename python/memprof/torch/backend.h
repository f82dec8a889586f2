#pragma once

#include <stddef.h>
#include <stdint.h>

/* What memprof's extension module calls of a library that records libtorch, or simulates it. Plain C, so that one library serves
 * every version of Python, and either kind of std::string. */

#define MEMPROF_TORCH_CALLS_VERSION 2

/* Bytes and blocks on the claimed device since the capture began. `peak` and `reserved` are the most bytes that were live since they
 * were reset. */
struct memprof_torch_usage {
  int64_t live, peak, allocated, allocations, deallocations, reserved;
};

struct memprof_torch_simulation {
  /* From `enter` to `leave`, this thread's operations are executed. */
  void (*enter_real_scope)(void);
  void (*leave_real_scope)(void);
  /* In a forked process that loads data: operations are executed from now on, also on simulated tensors. */
  void (*execute_in_this_process)(void);
  struct memprof_torch_usage (*usage)(void);
  void (*reset_peak)(void);
  void (*reset_reserved)(void);
  /* Requests beyond so many bytes on the claimed device raise torch.OutOfMemoryError. */
  void (*limit)(int64_t bytes);
};

struct memprof_torch_calls {
  unsigned version;          /* MEMPROF_TORCH_CALLS_VERSION of the library */
  const char* torch_version; /* that the library was compiled for: "2.13.0" */

  /* A source that records until `detach`; on failure null, and the reason in `error`, of `room` bytes. `device` points to the
   * capture's memprof::device_description, plain bytes of a size that both sides check. */
  void* (*attach)(const void* device, size_t device_bytes, char* error, size_t room);
  void (*detach)(void* source);
  void (*report_facts)(void* source);
  void (*destroy)(void* source);

  /* Describes the block of a tensor (`Tensor._cdata`). A parameter's gradients, present and future, are described with it. */
  void (*annotate)(void* tensor, const char* name, unsigned category);

  /* Counts operators from one call to the other (`memprof::track_pytorch_ops`); pairs nest. */
  void (*begin_operators)(void);
  void (*end_operators)(void);

  /* Null in a library that records. */
  const struct memprof_torch_simulation* simulation;
};

/* The only symbol of the library. */
typedef const struct memprof_torch_calls* memprof_torch_function(void);
