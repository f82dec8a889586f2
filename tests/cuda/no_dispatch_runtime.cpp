// What a program adds to run without a GPU.
#include <memprof/backend/cuda_no_dispatch_runtime.hpp>
