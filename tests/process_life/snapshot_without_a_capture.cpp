// A program that is instrumented and run unprofiled: nothing happens, and nothing is said.
// expected: nothing was said
#include <memprof/memprof.hpp>

#include <cstdio>
#include <cstdlib>

int main() {
  std::FILE* const said = std::tmpfile();
  const int before = dup(STDERR_FILENO);
  dup2(fileno(said), STDERR_FILENO);
  for (int step = 0; step < 3; ++step) {
    auto scope = memprof::track_operation<"step">();
    memprof::annotate(&step, {.name = "step"});
    memprof::snapshot("STEP");
  }
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  std::puts(std::ftell(said) == 0 && std::fseek(said, 0, SEEK_END) == 0 && std::ftell(said) == 0 ? "nothing was said"
                                                                                                 : "something");
}
