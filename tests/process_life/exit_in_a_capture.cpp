// `exit` inside a capture: its guard is never destroyed, and what static destructors and exit handlers see is right.
// expected: at exit 5000, in a static destructor 5000 of 6300
#include <memprof/memprof.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

memprof::memory_resource& memory() {
  static auto* const never_destroyed = new memprof::memory_resource{"cpu"};
  return *never_destroyed;
}

struct last_words {
  ~last_words() {
    (void)memory().allocate(300);  // static destructors still record
    const memprof::profile profile = memprof::current_profile();
    std::printf("in a static destructor %lld of %lld\n", static_cast<long long>(profile.space("cpu").cumulative_peak),
                static_cast<long long>(profile.space("cpu").allocations));
    std::fflush(stdout);
  }
};
const last_words destroyed_last;

}  // namespace

int main() {
  auto capture = memprof::begin_capture();
  std::atexit([] {
    (void)memory().allocate(1000);
    std::printf("at exit %lld, ", static_cast<long long>(memprof::current_profile().space("cpu").cumulative_peak));
  });
  void* const block = memory().allocate(5000);
  memory().deallocate(block, 5000);
  std::exit(0);
}
