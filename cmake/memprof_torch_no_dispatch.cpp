// The simulation of the library `memprof::torch_compiled`, which is built with the program that links it.
#include <memprof/backend/torch/simulation/implementation.hpp>
