#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_json_check.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

std::string validate_tt_json(std::FILE* memory, std::FILE* operations, std::uint64_t& count) {
  struct walker {
    detail::byte_reader in;
    std::string indent;
    std::string line{};
    /// Reads the next line that begins with the indent and `key`.
    [[nodiscard]] bool next(std::string_view key) {
      for (int byte = 0; byte >= 0;) {
        line.clear();
        for (byte = in.next(); byte >= 0 && byte != '\n'; byte = in.next()) line += static_cast<char>(byte);
        if (line.starts_with(indent + '"' + std::string{key} + "\": ")) break;
        if (byte < 0) return false;
      }
      line.erase(0, indent.size() + key.size() + 4);
      if (line.ends_with(',')) line.pop_back();
      return true;
    }
  };
  // One file has the index first, the other the loc.
  walker of_memory{{memory, "memory"}, std::string(6, ' ')};
  walker of_operations{{operations, "operations"}, std::string(4, ' ')};
  for (count = 0;; ++count) {
    const bool has_memory = of_memory.next("index");
    const bool has_operation = of_operations.next("loc");
    const std::string place = "operation " + std::to_string(count);
    if (has_memory != has_operation) return place + " is in only one of the files";
    if (!has_memory) return {};
    const std::string index = of_memory.line;
    const std::string loc = of_operations.line;
    if (!of_memory.next("loc") || !of_operations.next("index")) return place + " is cut off";
    if (index != std::to_string(count) || of_operations.line != index)
      return place + " has a different index in one of the files";
    if (of_memory.line == loc) continue;
    std::string difference = place + " is at ";
    difference += of_memory.line;
    difference += " in one file and at ";
    difference += loc;
    difference += " in the other";
    return difference;
  }
}

}  // namespace memprof::inline MEMPROF_ABI
