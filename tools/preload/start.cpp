// The last constructor of the library, because it is linked after the C++ library inside it: what that allocates for itself is
// not the program's.
#include "start.hpp"

[[gnu::constructor]] static void start_last(int count, char** words, char** environment) {
  memprof_preload::start(count, words, environment);
}
