#include "preloadable.hpp"

#include <memprof/detail/file_io.hpp>

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

namespace memprof_tool {
namespace {

[[nodiscard]] bool can_run(const std::filesystem::path& path) {
  std::error_code failure;
  return std::filesystem::is_regular_file(path, failure) && ::access(path.c_str(), X_OK) == 0;
}

/// The first word after "#!" in the first line of a script.
[[nodiscard]] std::string interpreter_in(std::string_view line) {
  line = line.substr(0, line.find('\n'));
  const std::size_t begin = std::min(line.find_first_not_of(" \t", 2), line.size());
  return std::string{line.substr(begin, line.find_first_of(" \t", begin) - begin)};
}

/// This program's own: what it was compiled for is what the library was compiled for.
[[nodiscard]] unsigned own_machine() {
  const memprof::detail::file_handle file{std::fopen("/proc/self/exe", "rb")};
  Elf64_Ehdr header{};
  return file && std::fread(&header, sizeof header, 1, file.get()) == 1 ? header.e_machine : EM_NONE;
}

[[nodiscard]] std::string obstacle_in_elf(std::FILE* file, const Elf64_Ehdr& header) {
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != own_machine())
    return "it is for another architecture than this memprof";
  for (unsigned index = 0; index < header.e_phnum; ++index) {
    Elf64_Phdr part{};
    const auto at = static_cast<long>(header.e_phoff + index * std::size_t{header.e_phentsize});
    if (std::fseek(file, at, SEEK_SET) != 0 || std::fread(&part, sizeof part, 1, file) != 1) break;
    if (part.p_type == PT_INTERP) return {};
  }
  return "it is linked statically, so that no library can be preloaded; include <memprof/backend/malloc.hpp> in it";
}

[[nodiscard]] std::string obstacle_in(const std::filesystem::path& program, int scripts_left) {
  using memprof::detail::reason_in_errno;
  struct stat status {};
  if (::stat(program.c_str(), &status) != 0) return reason_in_errno();
  if (!can_run(program)) return "it is not an executable file";
  const bool changes_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid();
  const bool changes_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != ::getgid();
  if (changes_user || changes_group || ::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0)
    return "it runs with rights of its own (setuid, setgid or capabilities), and then preloaded libraries are ignored";
  const memprof::detail::file_handle file{std::fopen(program.c_str(), "rb")};
  if (!file) return reason_in_errno();
  std::array<char, 4096> begin{};
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file.get());
  if (got > 2 && begin[0] == '#' && begin[1] == '!' && scripts_left > 0)
    return obstacle_in(interpreter_in({begin.data(), got}), scripts_left - 1);
  Elf64_Ehdr header{};
  if (got < sizeof header || std::memcmp(begin.data(), ELFMAG, SELFMAG) != 0) return "it is neither a program nor a script";
  std::memcpy(&header, begin.data(), sizeof header);
  return obstacle_in_elf(file.get(), header);
}

}  // namespace

std::filesystem::path find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return std::filesystem::exists(name) ? name : "";
  const char* const path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "/bin:/usr/bin" : path;
  for (;;) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::filesystem::path found = std::filesystem::path{end == 0 ? "." : folders.substr(0, end)} / name;
    if (can_run(found)) return found;
    if (end == folders.size()) return {};
    folders.remove_prefix(end + 1);
  }
}

std::string obstacle_to_preload(const std::filesystem::path& program) {
  constexpr int most_scripts = 4;  // as in Linux
  return obstacle_in(program, most_scripts);
}

}  // namespace memprof_tool
