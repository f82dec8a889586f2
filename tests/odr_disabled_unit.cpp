// Linked into every test as well: a unit in which memprof is compiled out does not disturb those in which it records.
#undef MEMPROF_ENABLED
#define MEMPROF_ENABLED 0
#include <memprof/memprof.hpp>
