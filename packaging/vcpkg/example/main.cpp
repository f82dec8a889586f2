#include <memprof/memprof.hpp>
#include <memprof/profile/json.hpp>

#include <memory_resource>
#include <vector>

int main() {
  auto capture = memprof::begin_capture();
  memprof::memory_resource memory{"cpu"};
  {
    const auto scope = memprof::track_operation<"weights">();
    const std::pmr::vector<float> weights(1 << 20, 0.0F, &memory);
  }
  capture.end();
  memprof::print_memory_usage();
  memprof::write_json(capture.profile(), "memory_profile.json");
}
