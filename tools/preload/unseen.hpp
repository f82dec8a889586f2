#pragma once

#include <memprof/backend/stack_modules.hpp>
#include <memprof/record/duplicate_registries.hpp>
#include <memprof/record/registry.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

/// @file
/// What of the program does not come to the functions that this library exports.

namespace memprof_preload {

/// Names an object of this library, by its address.
inline constinit char own_place = 0;

[[nodiscard]] inline bool is_in(const memprof::detail::loaded_module& module, const void* address) noexcept {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return module.begin <= number && number < module.end;
}

[[nodiscard]] inline std::string_view file_name_of(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

/// Whether who calls the `malloc` at that address comes here. `called` gets its file.
[[nodiscard]] inline bool leads_here(const void* function, Dl_info& called) noexcept {
  Dl_info own{};
  void* entry = nullptr;
  if (::dladdr(&own_place, &own) == 0 || ::dladdr1(function, &called, &entry, RTLD_DL_SYMENT) == 0) return true;
  // Where an executable that cannot be moved takes the address of `malloc`, that is its own jump to the one here.
  const auto* const found = static_cast<const ElfW(Sym)*>(entry);
  return own.dli_fbase == called.dli_fbase || (found != nullptr && found->st_shndx == SHN_UNDEF);
}

/// Whether the program's calls of `malloc` come here: an executable with one of its own comes first.
[[nodiscard]] inline bool is_called() noexcept {
  Dl_info called{};
  void* const symbol = ::dlsym(RTLD_DEFAULT, "malloc");
  return symbol == nullptr || leads_here(symbol, called);
}

/// The dynamic section of a loaded file.
class dynamic_section {
 public:
  explicit dynamic_section(const ::dl_phdr_info& file) noexcept : base_(file.dlpi_addr) {
    for (std::size_t index = 0; index < file.dlpi_phnum; ++index) {
      if (file.dlpi_phdr[index].p_type == PT_DYNAMIC)
        first_ = reinterpret_cast<const ElfW(Dyn)*>(base_ + file.dlpi_phdr[index].p_vaddr);
    }
  }

  /// The address of what it exports under that name; null: nothing. By the hash table of GNU's linkers.
  [[nodiscard]] const void* find(std::string_view name) const noexcept {
    const auto* const table = static_cast<const std::uint32_t*>(at(DT_GNU_HASH));
    const auto* const names = static_cast<const char*>(at(DT_STRTAB));
    const auto* const symbols = static_cast<const ElfW(Sym)*>(at(DT_SYMTAB));
    if (table == nullptr || names == nullptr || symbols == nullptr) return nullptr;
    const std::uint32_t bucket_count = table[0];
    const std::uint32_t first_symbol = table[1];
    const std::uint32_t* const buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);  // after the filter
    const std::uint32_t* const hashes = buckets + bucket_count;
    std::uint32_t hash = 5381;
    for (const char letter : name) hash = hash * 33 + static_cast<unsigned char>(letter);
    std::uint32_t index = bucket_count == 0 ? 0 : buckets[hash % bucket_count];
    if (index < first_symbol) return nullptr;
    for (;; ++index) {
      const std::uint32_t other = hashes[index - first_symbol];
      const ElfW(Sym)& symbol = symbols[index];
      if ((other | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF && name == names + symbol.st_name)
        return reinterpret_cast<const void*>(base_ + symbol.st_value);
      if ((other & 1) != 0) return nullptr;  // the last of its bucket
    }
  }

  /// Whether it calls, or takes the address of, a function of another file for which `is_wanted(name, slot)` holds: in the slot
  /// is the function's address, or one in this file until the first call.
  template <class Predicate>
  [[nodiscard]] bool refers_to(Predicate is_wanted) const noexcept {
    const auto* const names = static_cast<const char*>(at(DT_STRTAB));
    const auto* const symbols = static_cast<const ElfW(Sym)*>(at(DT_SYMTAB));
    if (names == nullptr || symbols == nullptr) return false;
    const auto is_in = [&](ElfW(Sword) table, ElfW(Sword) size, std::size_t begin) {
      const auto* const first = static_cast<const ElfW(Rela)*>(at(table));
      const std::size_t count = first == nullptr ? 0 : value(size) / sizeof *first;
      for (std::size_t index = begin; index < count; ++index) {
        const ElfW(Sym)& symbol = symbols[ELF64_R_SYM(first[index].r_info)];
        if (symbol.st_shndx == SHN_UNDEF && is_wanted(std::string_view{names + symbol.st_name}, base_ + first[index].r_offset))
          return true;
      }
      return false;
    };
    // A linker puts those that have no name first.
    return is_in(DT_JMPREL, DT_PLTRELSZ, 0) || is_in(DT_RELA, DT_RELASZ, value(DT_RELACOUNT));
  }

 private:
  [[nodiscard]] std::size_t value(ElfW(Sword) tag) const noexcept {
    for (const ElfW(Dyn)* entry = first_; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == tag) return entry->d_un.d_val;
    }
    return 0;
  }
  /// The loader adds the base to the addresses in it, except where the section cannot be written.
  [[nodiscard]] const void* at(ElfW(Sword) tag) const noexcept {
    const std::size_t address = value(tag);
    return address == 0 ? nullptr : reinterpret_cast<const void*>(address < base_ ? address + base_ : address);
  }

  std::size_t base_;
  const ElfW(Dyn) * first_ = nullptr;
};

/// Whether a loaded file gets `operator new` from another one.
[[nodiscard]] inline bool needs_operator_new() noexcept {
  const auto needs = [](::dl_phdr_info* file, std::size_t, void*) -> int {
    // "_Znw" begins the names of operator new, "_Zna" those of operator new[].
    return dynamic_section{*file}.refers_to(
        [](std::string_view name, std::size_t) { return name.starts_with("_Znw") || name.starts_with("_Zna"); });
  };
  return ::dl_iterate_phdr(needs, nullptr) != 0;
}

/// What the first loaded file that exports the name has under it; null: none does. Unlike `dlsym`, it finds what others cannot
/// see, and allocates nothing where there is nothing.
[[nodiscard]] inline const void* find_in_any_file(const char* name) noexcept {
  struct search {
    std::string_view name;
    const void* found = nullptr;
  } wanted{name};
  const auto find = [](::dl_phdr_info* file, std::size_t, void* data) -> int {
    auto& asked = *static_cast<search*>(data);
    asked.found = dynamic_section{*file}.find(asked.name);
    return asked.found != nullptr ? 1 : 0;
  };
  (void)::dl_iterate_phdr(find, &wanted);
  return wanted.found;
}

/// The allocator library whose `operator new` the program calls, past the `malloc` of the same library, which would have been
/// called from here; empty: none. Throws `std::bad_alloc`.
[[nodiscard]] inline std::string library_with_operator_new() {
  if (!needs_operator_new()) return {};
  const void* const operator_new = find_in_any_file("_Znwm");  // which takes a `std::size_t`
  if (operator_new == nullptr) return {};
  void* const next_malloc = ::dlsym(RTLD_NEXT, "malloc");
  Dl_info of_new{};
  Dl_info of_malloc{};
  if (next_malloc == nullptr || ::dladdr(operator_new, &of_new) == 0 || ::dladdr(next_malloc, &of_malloc) == 0 ||
      of_new.dli_fbase != of_malloc.dli_fbase)
    return {};
  return std::string{file_name_of(of_new.dli_fname)};
}

/// A loaded library whose `malloc` the loader took from a library before it looked here, as `RTLD_DEEPBIND` asks for.
struct bypassing_library {
  const char* path;
  const char* called;  ///< the path of the library whose `malloc` it calls
};

/// Those of the libraries, as far as they have called it and there is room; returns their number.
[[nodiscard]] inline std::size_t find_bypassing_libraries(std::span<bypassing_library> room) noexcept {
  struct search {
    std::span<bypassing_library> room;
    std::size_t count = 0;
  } all{room};
  const auto look = [](::dl_phdr_info* file, std::size_t, void* data) -> int {
    auto& wanted = *static_cast<search*>(data);
    const std::string_view path = file->dlpi_name == nullptr ? "" : file->dlpi_name;
    if (wanted.count == wanted.room.size() || path.empty()) return 0;
    const auto calls_other = [&](std::string_view name, std::size_t slot) {
      if (name != "malloc") return false;
      Dl_info called{};
      if (leads_here(*reinterpret_cast<const void* const*>(slot), called) || path == called.dli_fname) return false;
      wanted.room[wanted.count++] = {file->dlpi_name, called.dli_fname};
      return true;
    };
    (void)dynamic_section{*file}.refers_to(calls_other);
    return 0;
  };
  (void)::dl_iterate_phdr(look, &all);
  return all.count;
}

/// Whether the program has named anything for captures of its own, in a registry that is not this library's.
[[nodiscard]] inline bool uses_memprof() noexcept {
  const auto* const found = static_cast<const memprof::abi_1::registry*>(find_in_any_file(memprof::detail::registry_symbol));
  return found != nullptr && found->layout_version == memprof::abi_1::registry::current_layout_version &&
         found->labels != nullptr;
}

}  // namespace memprof_preload
