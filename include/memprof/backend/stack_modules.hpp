#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/trace/label.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <unistd.h>
#if defined(__linux__)
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#endif

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
// Weak, since a program may be run with an older one.
extern "C" [[gnu::weak]] int _dl_find_object(void*, dl_find_object*) noexcept;  // NOLINT(readability-redundant-declaration)
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// A file in memory that has code.
struct loaded_module {
  std::uintptr_t begin = 0;  ///< 0: there is none
  std::uintptr_t end = 0;
  std::uintptr_t bias = 0;            ///< was added to the file's own addresses
  const char* path = nullptr;         ///< of the loader; empty: the executable
  const void* frame_table = nullptr;  ///< its .eh_frame_hdr; null: it has none

  [[nodiscard]] bool operator==(const loaded_module&) const = default;
};

#if defined(__linux__)

/// `dl_iterate_phdr`'s visitor for `find_module`.
struct module_search {
  std::uintptr_t address;
  loaded_module found;

  static int visit(dl_phdr_info* module, std::size_t, void* data) noexcept {
    auto& search = *static_cast<module_search*>(data);
    loaded_module seen{~std::uintptr_t{0}, 0, module->dlpi_addr, module->dlpi_name, nullptr};
    for (std::size_t index = 0; index < module->dlpi_phnum; ++index) {
      const auto& part = module->dlpi_phdr[index];
      if (part.p_type == PT_GNU_EH_FRAME) seen.frame_table = reinterpret_cast<const void*>(module->dlpi_addr + part.p_vaddr);
      if (part.p_type != PT_LOAD) continue;
      const std::uintptr_t begin = module->dlpi_addr + part.p_vaddr;
      if (begin < seen.begin) seen.begin = begin;
      if (begin + part.p_memsz > seen.end) seen.end = begin + part.p_memsz;
    }
    if (search.address < seen.begin || search.address >= seen.end) return 0;
    search.found = seen;
    return 1;
  }
};

/// The module that an address is in. Not under the registry's lock: it may take the loader's.
[[nodiscard]] inline loaded_module find_module_of(std::uintptr_t address) noexcept {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
  if (&_dl_find_object != nullptr) [[likely]] {
    dl_find_object found{};
    if (::_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return {};
    const link_map* const map = found.dlfo_link_map;
    return {reinterpret_cast<std::uintptr_t>(found.dlfo_map_start), reinterpret_cast<std::uintptr_t>(found.dlfo_map_end),
            map == nullptr ? 0 : std::uintptr_t{map->l_addr}, map == nullptr ? nullptr : map->l_name, found.dlfo_eh_frame};
  }
#endif
  module_search search{address, {}};
  (void)::dl_iterate_phdr(&module_search::visit, &search);
  return search.found;
}

/// The build-id in a module's notes; empty if it has none.
[[nodiscard]] inline std::string_view build_id_of(const loaded_module& module) noexcept {
  constexpr std::size_t least = sizeof(ElfW(Ehdr));
  if (module.end - module.begin < least) return {};
  const auto& header = *reinterpret_cast<const ElfW(Ehdr)*>(module.begin);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof(ElfW(Phdr))) return {};
  const std::uintptr_t parts = module.begin + header.e_phoff;
  if (parts + header.e_phnum * sizeof(ElfW(Phdr)) > module.end) return {};
  for (std::size_t index = 0; index < header.e_phnum; ++index) {
    const auto& part = reinterpret_cast<const ElfW(Phdr)*>(parts)[index];
    if (part.p_type != PT_NOTE) continue;
    std::uintptr_t at = module.bias + part.p_vaddr;
    const std::uintptr_t end = at + part.p_memsz;
    if (at < module.begin || end > module.end) continue;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
      const auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
      const std::uintptr_t content = at + sizeof note + padded(note.n_namesz);
      if (content + note.n_descsz > end) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(&note + 1, "GNU", 4) == 0)
        return {reinterpret_cast<const char*>(content), std::size_t{note.n_descsz}};
      at = content + padded(note.n_descsz);
    }
  }
  return {};
}

#else

[[nodiscard]] inline loaded_module find_module_of(std::uintptr_t) noexcept { return {}; }
[[nodiscard]] inline std::string_view build_id_of(const loaded_module&) noexcept { return {}; }

#endif

/// Makes the text of a module's name (`module_text`) without heap memory. It is too large for the stacks of some threads.
class module_name {
 public:
  constexpr module_name() noexcept = default;

  /// The name, until the next call.
  [[nodiscard]] std::string_view of(const loaded_module& module) noexcept {
    size_ = 0;
    put_path(module.path == nullptr ? "" : module.path);
    put(name_separator);
    for (const char byte : build_id_of(module)) put_hex(static_cast<unsigned char>(byte), 2);
    put(name_separator);
    int digits = 1;
    while (digits < 16 && module.bias >> (4 * digits) != 0) ++digits;
    put_hex(module.bias, digits);
    return {text_, size_};
  }

 private:
  /// A whole path, since the program that reads the trace works in another folder.
  void put_path(std::string_view path) noexcept {
    if (path.empty()) {
#if defined(__linux__)
      const ::ssize_t length = ::readlink("/proc/self/exe", text_, most_path);
      if (length > 0) size_ = static_cast<std::size_t>(length);
#endif
      return;
    }
    if (path[0] != '/' && path.find('/') != path.npos && ::getcwd(text_, most_path) != nullptr) {
      size_ = std::strlen(text_);
      put('/');
    }
    for (const char character : path) put(character);
  }
  void put_hex(std::uint64_t value, int digits) noexcept {
    while (digits-- > 0) put("0123456789abcdef"[value >> (4 * digits) & 0xF]);
  }
  void put(char character) noexcept {
    if (size_ < sizeof text_) text_[size_++] = character;
  }

  static constexpr std::size_t most_path = 4096;

  char text_[2 * most_path];
  std::size_t size_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
