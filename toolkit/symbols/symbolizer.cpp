#include <memprof/config.hpp>
#include <memprof/toolkit/format/source_frame.hpp>
#include <memprof/toolkit/symbols/elf_symbols.hpp>
#include <memprof/toolkit/symbols/symbolizer.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#include <cxxabi.h>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifndef MEMPROF_TOOLKIT_LIBDW
#define MEMPROF_TOOLKIT_LIBDW 0
#endif
#if MEMPROF_TOOLKIT_LIBDW
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#endif

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Of one frame that has names: more are damage.
constexpr std::size_t most_ready_calls = 4096;

[[nodiscard]] std::string demangled(const char* name) {
  if (name == nullptr) return {};
  if (!std::string_view{name}.starts_with("_Z")) return name;  // of C, but perhaps a mangled type: `f` is `float`
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text{abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free};
  return status == 0 && text != nullptr ? text.get() : name;
}

}  // namespace

#if MEMPROF_TOOLKIT_LIBDW

/// A file with its debug information, at the addresses that its symbols have.
class debug_file {
 public:
  debug_file(const std::string& path, std::string_view build_id) {
    static char* no_folder = nullptr;  // elfutils' own places for debug files
    static const Dwfl_Callbacks callbacks{&dwfl_build_id_find_elf, &dwfl_standard_find_debuginfo, &dwfl_offline_section_address,
                                          &no_folder};
    session_ = dwfl_begin(&callbacks);
    if (session_ == nullptr) return;
    dwfl_report_begin(session_);
    module_ = dwfl_report_elf(session_, path.c_str(), path.c_str(), -1, 0, true);
    dwfl_report_end(session_, nullptr, nullptr);
    if (module_ != nullptr && has_other_id(build_id)) module_ = nullptr;
  }
  debug_file(const debug_file&) = delete;
  debug_file& operator=(const debug_file&) = delete;
  ~debug_file() {
    if (session_ != nullptr) dwfl_end(session_);
  }

  void add_calls(std::uint64_t address, std::vector<source_frame>& calls) const {
    if (module_ == nullptr) return;
    add_inlined(address, calls);
    GElf_Sym symbol{};
    GElf_Off within = 0;
    const char* const name = dwfl_module_addrinfo(module_, address, &within, &symbol, nullptr, nullptr, nullptr);
    const bool is_covered = name != nullptr && within < symbol.st_size && GELF_ST_TYPE(symbol.st_info) == STT_FUNC;
    if (calls.empty()) calls.emplace_back();
    if (calls.back().function.empty() && is_covered) calls.back().function = demangled(name);
    if (!calls.front().file.empty()) return;
    if (Dwfl_Line* const line = dwfl_module_getsrc(module_, address)) {
      const char* const file = dwfl_lineinfo(line, nullptr, &calls.front().line, nullptr, nullptr, nullptr);
      if (file != nullptr) calls.front().file = file;
    }
  }

 private:
  [[nodiscard]] bool has_other_id(std::string_view wanted) const {
    const unsigned char* bytes = nullptr;
    GElf_Addr place = 0;
    const int size = dwfl_module_build_id(module_, &bytes, &place);
    if (size <= 0 || wanted.empty()) return false;
    return hexadecimal({reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)}) != wanted;
  }

  /// The namespaces and classes of a function whose description has no linkage name, as that of an inlined constructor:
  /// "std::thread::". Empty where it is no member.
  [[nodiscard]] static std::string scope_of(const Dwarf_Die& function) {
    Dwarf_Die member = function;
    bool is_member = false;
    Dwarf_Attribute found;
    constexpr int most_steps = 4;  // in damaged descriptions they may lead in a circle
    for (int step = 0; step < most_steps && !is_member; ++step) {
      is_member = dwarf_attr(&member, DW_AT_specification, &found) != nullptr;
      if (!is_member && dwarf_attr(&member, DW_AT_abstract_origin, &found) == nullptr) return {};
      Dwarf_Die next;
      if (dwarf_formref_die(&found, &next) == nullptr) return {};
      member = next;
    }
    Dwarf_Die* all = nullptr;
    const int count = is_member ? dwarf_getscopes_die(&member, &all) : 0;
    const std::unique_ptr<Dwarf_Die, decltype(&std::free)> held{all, std::free};
    std::string scopes;
    for (int index = 1; index < count; ++index) {
      const int tag = dwarf_tag(&all[index]);
      if (tag != DW_TAG_namespace && tag != DW_TAG_class_type && tag != DW_TAG_structure_type && tag != DW_TAG_union_type) break;
      const char* const name = dwarf_diename(&all[index]);
      scopes.insert(0, std::string{name == nullptr ? "(anonymous namespace)" : name} + "::");
    }
    return scopes;
  }

  [[nodiscard]] static std::string name_of(Dwarf_Die& function) {
    Dwarf_Attribute found;
    for (const unsigned kind : {unsigned{DW_AT_linkage_name}, unsigned{DW_AT_MIPS_linkage_name}}) {
      if (dwarf_attr_integrate(&function, kind, &found) != nullptr) return demangled(dwarf_formstring(&found));
    }
    const char* const name = dwarf_attr_integrate(&function, DW_AT_name, &found) == nullptr ? nullptr : dwarf_formstring(&found);
    return name == nullptr ? "" : scope_of(function) + name;
  }

  /// The functions around the address, innermost first. Each call's place is an attribute of the function that was inlined there.
  void add_inlined(std::uint64_t address, std::vector<source_frame>& calls) const {
    Dwarf_Addr bias = 0;
    Dwarf_Die* const unit = dwfl_module_addrdie(module_, address, &bias);
    if (unit == nullptr) return;
    Dwarf_Die* scopes = nullptr;
    const int inner_count = dwarf_getscopes(unit, address - bias, &scopes);
    if (inner_count <= 0) return;
    const std::unique_ptr<Dwarf_Die, decltype(&std::free)> inner{scopes, std::free};
    // The scopes of the innermost one's own description lead out through all that it was inlined into.
    Dwarf_Die* all = nullptr;
    const int count = dwarf_getscopes_die(&scopes[0], &all);
    if (count <= 0) return;
    const std::unique_ptr<Dwarf_Die, decltype(&std::free)> held{all, std::free};
    Dwarf_Files* files = nullptr;
    if (dwarf_getsrcfiles(unit, &files, nullptr) != 0) files = nullptr;
    std::string next_file;
    int next_line = 0;
    for (int index = 0; index < count; ++index) {
      Dwarf_Die& scope = all[index];
      const int tag = dwarf_tag(&scope);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
      source_frame call;
      call.function = name_of(scope);
      call.file = std::exchange(next_file, {});
      call.line = std::exchange(next_line, 0);
      calls.push_back(std::move(call));
      if (tag == DW_TAG_subprogram) return;
      Dwarf_Attribute found;
      Dwarf_Word value = 0;
      if (files != nullptr && dwarf_formudata(dwarf_attr(&scope, DW_AT_call_file, &found), &value) == 0) {
        if (const char* const file = dwarf_filesrc(files, value, nullptr, nullptr)) next_file = file;
      }
      if (dwarf_formudata(dwarf_attr(&scope, DW_AT_call_line, &found), &value) == 0) next_line = static_cast<int>(value);
    }
  }

  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
};

#else

/// A file's own symbols.
class debug_file {
 public:
  debug_file(const std::string& path, std::string_view build_id) : symbols_(path) {
    is_other_ = !build_id.empty() && !symbols_.build_id().empty() && symbols_.build_id() != build_id;
  }

  void add_calls(std::uint64_t address, std::vector<source_frame>& calls) const {
    if (is_other_) return;
    calls.emplace_back();
    calls.back().function = demangled(symbols_.name_at(address));
  }

 private:
  elf_symbols symbols_;
  bool is_other_ = false;
};

#endif

namespace {

/// The text up to the next separator, which is taken off `rest`.
[[nodiscard]] std::string_view next_part(std::string_view& rest) {
  const std::size_t end = rest.find(name_separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
  return part;
}

/// The calls that a trace has itself.
[[nodiscard]] std::vector<source_frame> ready_calls(std::string_view texts) {
  std::vector<source_frame> calls;
  while (!texts.empty() && calls.size() < most_ready_calls) {
    source_frame call;
    call.function = next_part(texts);
    call.file = next_part(texts);
    const std::string_view line = next_part(texts);
    (void)std::from_chars(line.data(), line.data() + line.size(), call.line);
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace

}  // namespace detail

struct symbolizer::files {
  std::map<std::pair<std::string, std::string>, detail::debug_file> known;  // by path and build-id
};

symbolizer::symbolizer() : files_(std::make_unique<files>()) {}
symbolizer::~symbolizer() = default;

bool symbolizer::reads_debug_information() noexcept { return MEMPROF_TOOLKIT_LIBDW != 0; }

std::vector<source_frame> symbolizer::calls_at(const detail::module_text& module, std::uint64_t offset) {
  std::vector<source_frame> calls = detail::ready_calls(module.calls);
  if (calls.empty() && module.path.substr(0, 1) == "/") {
    const std::string path{module.path};
    const std::string build_id{module.build_id};
    auto found = files_->known.find({path, build_id});
    if (found == files_->known.end()) {
      found = files_->known
                  .emplace(std::piecewise_construct, std::forward_as_tuple(path, build_id), std::forward_as_tuple(path, build_id))
                  .first;
    }
    // A call's return address may be that of the next function, or of the next line.
    found->second.add_calls(offset == 0 ? 0 : offset - 1, calls);
  }
  if (calls.empty()) calls.emplace_back();
  const std::size_t slash = module.path.rfind('/');
  for (source_frame& call : calls) {
    call.module = module.path.substr(slash == module.path.npos ? 0 : slash + 1);
    call.offset = offset;
  }
  return calls;
}

}  // namespace memprof::inline MEMPROF_ABI
