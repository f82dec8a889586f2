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
  const auto available = [&](std::int64_t limit = -1) { return memprof::detail::available_memory(limit, root); };
  CHECK(available() == std::numeric_limits<std::int64_t>::max());

  put(root, "/proc/meminfo", "MemTotal:       24000000 kB\nMemFree:          500000 kB\nMemAvailable:   20000000 kB\n");
  CHECK(available() == std::int64_t{20'000'000} * 1024);
  CHECK(available(1'073'741'824) == 1'073'741'824);
  CHECK(available(std::int64_t{1} << 40) == available());
}

}  // namespace memprof_tests::estimate_available_memory
