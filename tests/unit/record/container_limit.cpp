#include <memprof/record/container_limit.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace memprof_tests::record_container_limit {

using memprof::detail::container_limit;

namespace {

constexpr std::int64_t mib = 1 << 20;

/// A folder that stands for the root of a system.
class fake_root {
 public:
  fake_root& put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text << '\n';
    return *this;
  }
  [[nodiscard]] std::string root() const { return folder_.file("root"); }
  [[nodiscard]] std::int64_t limit() const { return container_limit(root()); }

 private:
  memprof_tests::scratch_folder folder_;
};

constexpr const char* unified = "25 1 0:24 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate";
constexpr const char* legacy = "36 31 0:33 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";

}  // namespace

TEST_CASE("container limit: none where the system has no control groups, or groups have no limit") {
  CHECK(fake_root{}.limit() == -1);
  fake_root v2;
  v2.put("/proc/self/cgroup", "0::/user.slice").put("/proc/self/mountinfo", unified);
  CHECK(v2.limit() == -1);
  v2.put("/sys/fs/cgroup/user.slice/memory.max", "max").put("/sys/fs/cgroup/user.slice/memory.high", "max");
  CHECK(v2.limit() == -1);
  fake_root v1;
  v1.put("/proc/self/cgroup", "4:memory:/\n0::/").put("/proc/self/mountinfo", legacy);
  v1.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  CHECK(v1.limit() == -1);
}

TEST_CASE("container limit: in cgroup v2 the least of memory.max and memory.high on the way up") {
  fake_root system;
  system.put("/proc/self/cgroup", "0::/a/b/c").put("/proc/self/mountinfo", unified);
  system.put("/sys/fs/cgroup/a/b/c/memory.max", std::to_string(900 * mib));
  CHECK(system.limit() == 900 * mib);
  system.put("/sys/fs/cgroup/a/memory.max", std::to_string(700 * mib));
  CHECK(system.limit() == 700 * mib);
  system.put("/sys/fs/cgroup/a/b/memory.high", std::to_string(600 * mib));
  CHECK(system.limit() == 600 * mib);
  system.put("/sys/fs/cgroup/a/b/other/memory.max", std::to_string(1 * mib));
  CHECK(system.limit() == 600 * mib);
}

TEST_CASE("container limit: in cgroup v1 the least memory.limit_in_bytes on the way up, whatever else is mounted") {
  fake_root system;
  system.put("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/12ab\n1:cpu:/docker/12ab\n0::/");
  system.put("/proc/self/mountinfo", std::string{"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"} + legacy);
  system.put("/sys/fs/cgroup/memory/docker/12ab/memory.limit_in_bytes", std::to_string(512 * mib));
  system.put("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", std::to_string(2048 * mib));
  system.put("/sys/fs/cgroup/cpu/docker/12ab/memory.limit_in_bytes", std::to_string(1 * mib));
  CHECK(system.limit() == 512 * mib);
  system.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(256 * mib));
  CHECK(system.limit() == 256 * mib);
}

TEST_CASE("container limit: in a container the mount is the group, whether the path is the host's or its own") {
  for (const char* const path : {"/docker/12ab", "/", "/../elsewhere"}) {
    fake_root system;
    system.put("/proc/self/cgroup", "4:memory:" + std::string{path});
    system.put("/proc/self/mountinfo", "36 31 0:33 /docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory");
    system.put("/sys/fs/cgroup/memory/memory.limit_in_bytes", std::to_string(512 * mib));
    CHECK(system.limit() == 512 * mib);
  }
  fake_root below;
  below.put("/proc/self/cgroup", "4:memory:/docker/12ab/job");
  below.put("/proc/self/mountinfo", "36 31 0:33 /docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory");
  below.put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", std::to_string(100 * mib));
  CHECK(below.limit() == 100 * mib);
}

TEST_CASE("container limit: what is no number is no limit") {
  fake_root system;
  system.put("/proc/self/cgroup", "no colon\n0::/a").put("/proc/self/mountinfo", std::string{"short line\n\n"} + unified);
  system.put("/sys/fs/cgroup/a/memory.max", "many");
  CHECK(system.limit() == -1);
  system.put("/sys/fs/cgroup/a/memory.max", "0");
  CHECK(system.limit() == 0);
}

}  // namespace memprof_tests::record_container_limit
