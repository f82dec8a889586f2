// The last constructor of the library, because it is linked after the C++ library inside it: what that allocates for itself is
// not the program's.
#include "start.hpp"

[[gnu::constructor]] static void start_last(int, char**, char** environment) { memprof_preload::start(environment); }
