#pragma once

#include <memprof/detail/process.hpp>
#include <memprof/trace/capture_info.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <unistd.h>

namespace memprof::inline MEMPROF_ABI::detail {

/// The integer in an environment variable; -1 if it is unset or not a number.
[[nodiscard]] inline std::int64_t number_in_environment(const char* name) noexcept {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text < '0' || *text > '9') return -1;
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text, &end, 10);
  return *end == '\0' && errno == 0 ? number : -1;
}

/// The variables in which a launcher tells a process its rank.
struct launcher_variables {
  const char* rank;
  const char* world_size;
  const char* local_rank;
};

/// torchrun, Open MPI, MVAPICH, MPICH and Intel MPI, Slurm, in this order, because each may run under the next.
inline constexpr launcher_variables launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

/// This process's arguments, joined by spaces, cut off at about 4 KB.
[[nodiscard]] inline std::string command_line() {
  std::string text;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return text;
  text.resize(4096);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& character : text) {
    if (character == '\0') character = ' ';
  }
  return text;
}

[[nodiscard]] inline process_info describe_process() {
  process_info found;
  found.id = process_id();
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0) found.host = host;
  found.command_line = command_line();
  for (const launcher_variables& launcher : launchers) {
    const std::int64_t rank = number_in_environment(launcher.rank);
    const std::int64_t world_size = number_in_environment(launcher.world_size);
    if (rank < 0 || world_size <= rank) continue;  // RANK alone could mean anything
    found.rank = rank;
    found.world_size = world_size;
    found.local_rank = number_in_environment(launcher.local_rank);
    break;
  }
  return found;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
