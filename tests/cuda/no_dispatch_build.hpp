#pragma once

/// @file
/// Put in front of a program with `cuda_backend` (`-include`), so that it is compiled as it is for a machine without a GPU.

#include <memprof/backend/cuda.hpp>
#include <memprof/backend/cuda_no_dispatch.hpp>

#define cuda_backend cuda_no_dispatch
