// The library `memprof::compiled`, which is built with the program that links it.
#include <memprof/implementation.hpp>
