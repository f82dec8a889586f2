#include <memprof/config.hpp>
#include <memprof/toolkit/symbols/elf_symbols.hpp>

#if __has_include(<elf.h>)
#include <elf.h>
#define HAS_ELF 1
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

#ifdef HAS_ELF

namespace {

/// A part of a file that may be shorter than it says.
template <class T>
[[nodiscard]] bool read_at(std::string_view bytes, std::uint64_t offset, T& value) noexcept {
  if (offset > bytes.size() || bytes.size() - offset < sizeof value) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return true;
}

[[nodiscard]] std::string_view part_of(std::string_view bytes, const Elf64_Shdr& section) noexcept {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes.size()) return {};
  return bytes.substr(section.sh_offset, section.sh_size);
}

}  // namespace

#endif

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    text += "0123456789abcdef"[static_cast<unsigned char>(byte) & 0xF];
  }
  return text;
}

#ifdef HAS_ELF

elf_symbols::elf_symbols(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  const std::string content{std::istreambuf_iterator<char>{in}, {}};
  const std::string_view bytes = content;
  Elf64_Ehdr header{};
  if (!read_at(bytes, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) return;
  const auto section_at = [&](std::uint64_t index, Elf64_Shdr& section) {
    return index < header.e_shnum && read_at(bytes, header.e_shoff + index * sizeof section, section);
  };
  Elf64_Shdr section{};
  for (std::uint64_t index = 0; section_at(index, section); ++index) {
    const std::string_view part = part_of(bytes, section);
    if (section.sh_type == SHT_NOTE) {
      Elf64_Nhdr note{};
      constexpr std::size_t name_bytes = 4;
      if (read_at(part, 0, note) && note.n_type == NT_GNU_BUILD_ID && note.n_namesz == name_bytes &&
          part.substr(sizeof note, name_bytes) == std::string_view{"GNU", name_bytes})
        build_id_ = hexadecimal(part.substr(sizeof note + name_bytes, note.n_descsz));
    }
    Elf64_Shdr names{};
    if ((section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) || !section_at(section.sh_link, names)) continue;
    const std::string_view texts = part_of(bytes, names);
    Elf64_Sym symbol{};
    for (std::uint64_t at = 0; read_at(part, at, symbol); at += sizeof symbol) {
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF || symbol.st_name >= texts.size()) continue;
      const std::string_view name = texts.substr(symbol.st_name);
      functions_.push_back({symbol.st_value, symbol.st_size, std::string{name.substr(0, name.find('\0'))}});
    }
  }
  std::stable_sort(functions_.begin(), functions_.end(),
                   [](const function& left, const function& right) { return left.begin < right.begin; });
}

#undef HAS_ELF
#else

elf_symbols::elf_symbols(const std::string&) {}

#endif

const char* elf_symbols::name_at(std::uint64_t address) const noexcept {
  auto found = std::upper_bound(functions_.begin(), functions_.end(), address,
                                [](std::uint64_t wanted, const function& each) { return wanted < each.begin; });
  // Several names of one function stand together; another one may lie within a longer one, but not by far.
  for (int looks = 0; found != functions_.begin() && looks < 16; ++looks) {
    --found;
    if (address - found->begin < found->size) return found->name.c_str();
  }
  return nullptr;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
