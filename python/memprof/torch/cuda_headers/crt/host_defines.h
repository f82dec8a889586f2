#pragma once

/* What the headers of CUDA's runtime take from the file of this name of CUDA's compiler, as a C++ compiler sees it: host_config.h. */

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __cudart_builtin__
#define __device__
#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __host__
#define __location__(a)
