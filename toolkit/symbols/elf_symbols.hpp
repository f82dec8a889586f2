#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// Bytes in hexadecimal, two digits each.
[[nodiscard]] std::string hexadecimal(std::string_view bytes);

/// The functions of an ELF file by its own symbols, static and dynamic. A file that is missing or damaged has none.
class elf_symbols {
 public:
  explicit elf_symbols(const std::string& path);

  /// In hexadecimal; empty: it has none.
  [[nodiscard]] const std::string& build_id() const noexcept { return build_id_; }
  /// The function that covers the address; null if there is none.
  [[nodiscard]] const char* name_at(std::uint64_t address) const noexcept;

 private:
  struct function {
    std::uint64_t begin;
    std::uint64_t size;
    std::string name;
  };

  std::string build_id_;
  std::vector<function> functions_;  // in order of their addresses
};

}  // namespace memprof::inline MEMPROF_ABI::detail
