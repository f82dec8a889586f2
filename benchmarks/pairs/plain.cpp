// The program without memprof. Linked alone, or with another replacement of operator new to compare with.
#include "workload.hpp"

#include <cstdio>

namespace {

struct no_operations {
  struct nothing {};
  static nothing open(std::uint64_t) { return {}; }
};

}  // namespace

int main(int count, char** arguments) {
  const pairs::options options = pairs::parse(count, arguments);
  const pairs::stopwatch watch;
  const double waited = pairs::run<no_operations>(options);
  const pairs::cost spent = watch.read(waited);
  std::printf("{\"events\": %llu, \"cpu_ns\": %.0f, \"wall_ns\": %.0f, \"waited_ns\": %.0f}\n",
              static_cast<unsigned long long>(pairs::events(options)), spent.cpu, spent.wall, spent.waited);
}
