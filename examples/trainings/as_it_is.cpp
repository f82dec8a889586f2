// The training, without a line of memprof: `memprof run` records it.
#include "training.hpp"

#include <cstdlib>

int main(int count, char** words) {
  for (const phase& each : training(count > 1 ? std::atof(words[1]) : 1)) each.run();
}
