// A program that only marks scopes. It compiles in a fraction of the time that a capture takes: for tests of how headers are
// found.
#include <memprof/record.hpp>
#include <memprof/version.hpp>

int main() {
  const auto scope = memprof::track_operation<"step">();
  memprof::snapshot("STEP");
  return memprof::version_string[0] == '\0' ? 1 : 0;
}
