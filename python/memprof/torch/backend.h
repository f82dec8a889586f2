#pragma once

#include <stddef.h>

/* What memprof's extension module calls of the library that records libtorch. Plain C, so that one library serves every version of
 * Python, and either kind of std::string. */

#define MEMPROF_TORCH_CALLS_VERSION 2

struct memprof_torch_calls {
  unsigned version;          /* MEMPROF_TORCH_CALLS_VERSION of the library */
  const char* torch_version; /* that the library was compiled for: "2.13.0" */

  /* A source that records until `detach`; on failure null, and the reason in `error`, of `room` bytes. */
  void* (*attach)(char* error, size_t room);
  void (*detach)(void* source);
  void (*report_facts)(void* source);
  void (*destroy)(void* source);

  /* Describes the block of a tensor (`Tensor._cdata`). A parameter's gradients, present and future, are described with it. */
  void (*annotate)(void* tensor, const char* name, unsigned category);

  /* Counts operators from one call to the other (`memprof::track_pytorch_ops`); pairs nest. */
  void (*begin_operators)(void);
  void (*end_operators)(void);
};

/* The only symbol of the library. */
typedef const struct memprof_torch_calls* memprof_torch_function(void);
