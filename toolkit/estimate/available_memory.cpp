#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/available_memory.hpp>

#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace memprof::inline MEMPROF_ABI::detail {

std::int64_t available_memory(std::int64_t limit, const std::string& root) {
  std::int64_t available = std::numeric_limits<std::int64_t>::max();
  std::ifstream lines{root + "/proc/meminfo"};  // "MemAvailable:   123456 kB", of 1,024 bytes each
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields{line};
    std::string name;
    std::int64_t kibibytes = 0;
    if (fields >> name >> kibibytes && name == "MemAvailable:") available = kibibytes * 1024;
  }
  return limit >= 0 && limit < available ? limit : available;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
