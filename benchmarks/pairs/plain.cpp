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
  const double begin = pairs::cpu_ns();
  pairs::run<no_operations>(options);
  const double spent = pairs::cpu_ns() - begin;
  std::printf("{\"events\": %llu, \"cpu_ns\": %.0f}\n", static_cast<unsigned long long>(pairs::events(options)), spent);
}
