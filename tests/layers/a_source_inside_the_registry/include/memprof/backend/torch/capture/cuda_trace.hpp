// expected: backend/torch/capture/cuda_trace.hpp:3: it writes through event_sink: it may not include record/registry.hpp
#pragma once
#include <memprof/record/registry.hpp>
