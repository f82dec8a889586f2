#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/succeeds.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

/// @file
/// What the control group of the process may take of the host's memory, as in a container: cgroup v1 and v2, from Linux'
/// Documentation admin-guide/cgroup-v1/memory.rst and admin-guide/cgroup-v2.rst.

namespace memprof::inline MEMPROF_ABI::detail {

/// A place in the hierarchy of control groups: a folder, and where the hierarchy is mounted.
struct control_group {
  std::string folder;
  std::string mount;
  bool is_unified = false;  ///< v2
};

/// The content of a file of the system; empty if it cannot be read. At most a megabyte.
[[nodiscard, gnu::cold]] inline std::string system_file(const std::string& path) {
  std::string text;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  constexpr std::size_t most = std::size_t{1} << 20;
  char part[4096];
  for (ssize_t got = 0; text.size() < most && (got = ::read(file, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(got));
  ::close(file);
  return text;
}

/// Takes the text up to the separator, which goes with it.
[[nodiscard, gnu::cold]] inline std::string_view take_field(std::string_view& rest, char separator) noexcept {
  const std::size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
  return field;
}

/// Whether a list separated by commas has "memory".
[[nodiscard, gnu::cold]] inline bool has_memory(std::string_view list) noexcept {
  while (!list.empty()) {
    if (take_field(list, ',') == "memory") return true;
  }
  return false;
}

/// The process's path in the hierarchy, by /proc/self/cgroup; false if it is in none.
[[nodiscard, gnu::cold]] inline bool find_path(std::string_view groups, bool is_unified, std::string_view& path) noexcept {
  while (!groups.empty()) {
    std::string_view line = take_field(groups, '\n');
    const std::string_view number = take_field(line, ':');
    const std::string_view controllers = take_field(line, ':');
    if (is_unified ? number != "0" || !controllers.empty() : !has_memory(controllers)) continue;
    path = line;
    return true;
  }
  return false;
}

/// The group of the process, by a line of /proc/self/mountinfo; false if it mounts no hierarchy that limits memory. Where the
/// path is not below the mount's root, as with a namespace of its own, the mount itself is the group.
[[nodiscard, gnu::cold]] inline bool group_of_mount(std::string_view line, std::string_view groups, const std::string& root,
                                                    control_group& found) {
  std::string_view rest = line;
  for (int field = 0; field < 3; ++field) (void)take_field(rest, ' ');
  const std::string_view mounted = take_field(rest, ' ');
  const std::string_view point = take_field(rest, ' ');
  const std::size_t end_of_options = line.find(" - ");
  if (end_of_options == line.npos) return false;
  rest = line.substr(end_of_options + 3);
  const std::string_view type = take_field(rest, ' ');
  (void)take_field(rest, ' ');
  found.is_unified = type == "cgroup2";
  if (!found.is_unified && (type != "cgroup" || !has_memory(rest))) return false;
  std::string_view path;
  if (!find_path(groups, found.is_unified, path)) return false;
  const std::string_view prefix = mounted == "/" ? std::string_view{} : mounted;
  const bool is_below = path.substr(0, prefix.size()) == prefix && path.size() > prefix.size() && path[prefix.size()] == '/';
  found.mount = root + std::string{point};
  found.folder = found.mount;
  if (is_below && path.substr(prefix.size()) != "/") found.folder += path.substr(prefix.size());
  return true;
}

/// A limit in a file; -1: none. What v1 says without one is the greatest multiple of a page.
[[nodiscard, gnu::cold]] inline std::int64_t limit_in(const std::string& path) {
  constexpr std::int64_t least_unlimited = std::int64_t{1} << 60;
  std::int64_t limit = -1;
  for (const char digit : system_file(path)) {
    if (digit < '0' || digit > '9') break;
    if (limit >= least_unlimited / 10) return -1;
    limit = (limit < 0 ? 0 : limit * 10) + (digit - '0');
  }
  return limit;
}

/// The least limit of the group and of those it lies in; -1: none.
[[nodiscard, gnu::cold]] inline std::int64_t least_limit(control_group group) {
  std::int64_t least = -1;
  const auto take = [&](const char* file) {
    const std::int64_t limit = limit_in(group.folder + file);
    if (limit >= 0 && (least < 0 || limit < least)) least = limit;
  };
  while (true) {
    if (group.is_unified) {
      take("/memory.max");
      take("/memory.high");
    } else {
      take("/memory.limit_in_bytes");
    }
    if (group.folder.size() <= group.mount.size()) return least;
    group.folder.resize(group.folder.rfind('/'));
  }
}

/// What the process may take of the host's memory together with the others in its control group, in bytes: the least of the
/// limits from its group up, of v1 and v2. -1: there is none, or it is unknown. `root` is where / is, for tests. Reads some
/// files, once in a capture; allocates.
[[nodiscard, gnu::cold]] inline std::int64_t container_limit(const std::string& root = {}) noexcept {
  std::int64_t least = -1;
  (void)succeeds([&] {
    const std::string groups = system_file(root + "/proc/self/cgroup");
    const std::string mounts = system_file(root + "/proc/self/mountinfo");
    for (std::string_view rest = mounts; !rest.empty();) {
      control_group group;
      if (!group_of_mount(take_field(rest, '\n'), groups, root, group)) continue;
      const std::int64_t limit = least_limit(group);
      if (limit >= 0 && (least < 0 || limit < least)) least = limit;
    }
  });
  return least;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
