#pragma once

#include "unseen.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/// @file
/// Allocators that a program calls by names of their own, past `malloc`.

namespace memprof_preload {

/// Names of an allocator's functions.
struct allocator_family {
  std::string_view prefix;
  std::array<const char*, 2> functions;  ///< either tells that it is there: a linker leaves out what nobody calls
};

inline constexpr allocator_family allocator_families[] = {
    {"je_", {"je_malloc", "je_mallocx"}},
    {"_rjem_", {"_rjem_malloc", "_rjem_mallocx"}},  // Rust's tikv-jemallocator
    {"mi_", {"mi_malloc", "mi_malloc_aligned"}},
    {"tc_", {"tc_malloc", "tc_memalign"}},
    {"sn_", {"sn_malloc", "sn_rust_alloc"}},
    {"rp", {"rpmalloc", "rpaligned_alloc"}},
    {"scalable_", {"scalable_malloc", "scalable_aligned_malloc"}},  // oneTBB
    {"dl", {"dlmalloc", "dlmemalign"}},
    {"ned", {"nedmalloc", "nedmemalign"}},
};

/// Calls `visit(name)` for each function in the executable's table of symbols, which it has unless it was stripped.
template <class Visit>
void for_each_own_function(Visit visit) noexcept {
  const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  struct stat status {};
  const bool is_known = ::fstat(file, &status) == 0 && status.st_size > static_cast<::off_t>(sizeof(ElfW(Ehdr)));
  const auto bytes = is_known ? static_cast<std::size_t>(status.st_size) : 0;
  void* const mapped = is_known ? ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
  ::close(file);
  if (mapped == MAP_FAILED) return;
  const auto* const begin = static_cast<const char*>(mapped);
  const auto is_within = [bytes](std::size_t at, std::size_t size) { return at <= bytes && size <= bytes - at; };
  ElfW(Ehdr) header;
  std::memcpy(&header, begin, sizeof header);
  const auto section = [&](std::size_t index) {
    ElfW(Shdr) read{};
    const std::size_t at = header.e_shoff + index * sizeof read;
    if (index < header.e_shnum && is_within(at, sizeof read)) std::memcpy(&read, begin + at, sizeof read);
    return is_within(read.sh_offset, read.sh_size) ? read : ElfW(Shdr){};
  };
  for (std::size_t index = 0; index < header.e_shnum; ++index) {
    const ElfW(Shdr) table = section(index);
    if (table.sh_type != SHT_SYMTAB) continue;
    const ElfW(Shdr) names = section(table.sh_link);
    if (names.sh_size == 0 || begin[names.sh_offset + names.sh_size - 1] != 0) continue;
    for (std::size_t at = 0; at + sizeof(ElfW(Sym)) <= table.sh_size; at += sizeof(ElfW(Sym))) {
      ElfW(Sym) symbol;
      std::memcpy(&symbol, begin + table.sh_offset + at, sizeof symbol);
      if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_name >= names.sh_size) continue;
      visit(begin + names.sh_offset + symbol.st_name);
    }
  }
  ::munmap(mapped, bytes);
}

/// Calls `found(name)` for an allocator that is linked into the executable. Reads the file, some 10 ns a symbol.
template <class Found>
void find_linked_allocators(Found found) {
  std::array<const char*, std::size(allocator_families)> names{};
  for_each_own_function([&](const char* name) {
    for (std::size_t index = 0; index < names.size(); ++index) {
      for (const char* const function : allocator_families[index].functions) {
        if (std::strcmp(name, function) == 0) names[index] = function;
      }
    }
  });
  for (const char* const name : names) {
    if (name != nullptr) found(name);
  }
}

/// A library that exports a function of an allocator.
struct exported_allocator {
  const char* function = nullptr;
  const char* path = nullptr;  ///< empty: the executable
  bool has_malloc = false;
};

[[nodiscard]] inline exported_allocator find_exported(const allocator_family& family) noexcept {
  struct search {
    const allocator_family& family;
    exported_allocator found;
  } wanted{family, {}};
  const auto look = [](::dl_phdr_info* file, std::size_t, void* data) -> int {
    auto& asked = *static_cast<search*>(data);
    const dynamic_section section{*file};
    for (const char* const function : asked.family.functions) {
      if (section.find(function) == nullptr) continue;
      asked.found = {function, file->dlpi_name, section.find("malloc") != nullptr};
      return 1;
    }
    return 0;
  };
  (void)::dl_iterate_phdr(look, &wanted);
  return wanted.found;
}

/// Whether a loaded file calls functions of the family in another one.
[[nodiscard]] inline bool is_family_called(const allocator_family& family) noexcept {
  const auto calls = [](::dl_phdr_info* file, std::size_t, void* data) -> int {
    const std::string_view prefix = static_cast<const allocator_family*>(data)->prefix;
    return dynamic_section{*file}.refers_to([prefix](std::string_view name, std::size_t) {
      return name.starts_with(prefix) && (name.find("alloc") != name.npos || name.find("new") != name.npos);
    });
  };
  return ::dl_iterate_phdr(calls, const_cast<allocator_family*>(&family)) != 0;
}

/// Calls `found(name, library, is_recorded_heap)` for each allocator that a loaded library exports by names of its own. One that
/// has `malloc` as well counts if a loaded file calls it by the others; then `is_recorded_heap`.
template <class Found>
void find_exported_allocators(Found found) {
  for (const allocator_family& family : allocator_families) {
    const exported_allocator allocator = find_exported(family);
    if (allocator.function == nullptr || (allocator.has_malloc && !is_family_called(family))) continue;
    found(allocator.function, file_name_of(allocator.path == nullptr ? "" : allocator.path), allocator.has_malloc);
  }
}

}  // namespace memprof_preload
