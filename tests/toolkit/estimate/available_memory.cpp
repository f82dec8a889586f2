#include <memprof/toolkit/estimate/available_memory.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

namespace memprof_tests::estimate_available_memory {

namespace {

void put(const std::string& root, const std::string& path, const std::string& text) {
  const std::filesystem::path file = root + path;
  std::filesystem::create_directories(file.parent_path());
  std::ofstream{file} << text;
}

}  // namespace

TEST_CASE("available memory: cached files do not count as taken, and a container's limit is the most") {
  const memprof_tests::scratch_folder folder;
  const std::string root = folder.file("root");
  const auto available = [&] { return memprof::detail::available_memory(root); };
  CHECK(available() == std::numeric_limits<std::int64_t>::max());

  put(root, "/proc/meminfo", "MemTotal:       24000000 kB\nMemFree:          500000 kB\nMemAvailable:   20000000 kB\n");
  CHECK(available() == std::int64_t{20'000'000} * 1024);

  put(root, "/proc/self/cgroup", "0::/a\n");
  put(root, "/proc/self/mountinfo", "25 1 0:24 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  put(root, "/sys/fs/cgroup/a/memory.max", "1073741824\n");
  CHECK(available() == 1'073'741'824);
}

}  // namespace memprof_tests::estimate_available_memory
