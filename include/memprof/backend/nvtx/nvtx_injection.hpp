#pragma once

#include <memprof/backend/nvtx/nvtx_interface.hpp>
#include <memprof/backend/nvtx/nvtx_ranges.hpp>
#include <memprof/backend/nvtx/nvtx_text.hpp>
#include <memprof/config.hpp>

#include <atomic>
#include <cstdint>
#include <string_view>

/// @file
/// What NVTX calls in place of nothing, once `initialize` has been NVTX's tool.

namespace memprof::inline MEMPROF_ABI::detail::nvtx {

/// Whether a program's NVTX has asked for its tool.
inline constinit std::atomic<bool> is_initialized{false};

inline int push(domain_handle domain, std::string_view name) noexcept {
  thread_ranges* const ranges = ranges_of_this_thread();
  return ranges == nullptr ? -1 : ranges->push(domain, name);
}
inline int pop(domain_handle domain) noexcept {
  thread_ranges* const ranges = ranges_of_this_thread();
  return ranges == nullptr ? -1 : ranges->pop(domain);
}

inline int push_in_domain(domain_handle domain, const event_attributes* attributes) noexcept {
  if (attributes == nullptr) return -1;
  return with_message(attributes->type, attributes->message, [&](std::string_view name) { return push(domain, name); });
}
inline int push_ex(const event_attributes* attributes) noexcept { return push_in_domain(nullptr, attributes); }
inline int push_ascii(const char* name) noexcept {
  return with_message(message_type::ascii, {.ascii = name}, [](std::string_view text) { return push(nullptr, text); });
}
inline int push_wide(const wchar_t* name) noexcept {
  return with_message(message_type::unicode, {.unicode = name}, [](std::string_view text) { return push(nullptr, text); });
}
inline int pop_default() noexcept { return pop(nullptr); }

inline std::uint64_t start(std::string_view name) noexcept { return process_started_ranges().start(name); }
inline std::uint64_t start_ex(const event_attributes* attributes) noexcept {
  return attributes == nullptr ? 0 : with_message(attributes->type, attributes->message, start);
}
inline std::uint64_t start_in_domain(domain_handle, const event_attributes* attributes) noexcept { return start_ex(attributes); }
inline std::uint64_t start_ascii(const char* name) noexcept { return with_message(message_type::ascii, {.ascii = name}, start); }
inline std::uint64_t start_wide(const wchar_t* name) noexcept {
  return with_message(message_type::unicode, {.unicode = name}, start);
}
inline void end(std::uint64_t range) noexcept { process_started_ranges().end(range); }
inline void end_in_domain(domain_handle, std::uint64_t range) noexcept { end(range); }

inline string_handle register_ascii(domain_handle, const char* text) noexcept {
  return text == nullptr ? nullptr : process_strings().add(text);
}
inline string_handle register_wide(domain_handle, const wchar_t* text) noexcept {
  return text == nullptr ? nullptr : process_strings().add(narrow_text{text}.view());
}

/// A new domain. Its name is not used.
inline domain_handle create_domain() noexcept {
  static constinit std::atomic<std::uintptr_t> last{0};
  return reinterpret_cast<domain_handle>(last.fetch_add(1, std::memory_order_relaxed) + 1);
}
inline domain_handle create_domain_ascii(const char*) noexcept { return create_domain(); }
inline domain_handle create_domain_wide(const wchar_t*) noexcept { return create_domain(); }

/// The functions of a module of NVTX, which a program calls through a table.
class module_functions {
 public:
  module_functions(const callback_table& of_program, std::int32_t module) noexcept {
    if (of_program.functions_of_module(module, &table_, &count_) == 0) count_ = 0;
  }
  template <class Function>
  void set(unsigned id, Function* taken) const noexcept {
    if (id < count_ && table_[id] != nullptr) *table_[id] = reinterpret_cast<function>(taken);
  }

 private:
  function_table table_ = nullptr;
  unsigned count_ = 0;
};

/// InitializeInjectionNvtx2.
inline int initialize(get_export_table tables) noexcept {
  const auto* const found = static_cast<const callback_table*>(tables(callbacks));
  if (found == nullptr || found->size < sizeof(callback_table) || found->functions_of_module == nullptr) return 0;
  const module_functions first{*found, core};
  first.set(range_start_ex, start_ex);
  first.set(range_start_ascii, start_ascii);
  first.set(range_start_wide, start_wide);
  first.set(range_end, end);
  first.set(range_push_ex, push_ex);
  first.set(range_push_ascii, push_ascii);
  first.set(range_push_wide, push_wide);
  first.set(range_pop, pop_default);
  const module_functions second{*found, core_2};
  second.set(domain_range_start_ex, start_in_domain);
  second.set(domain_range_end, end_in_domain);
  second.set(domain_range_push_ex, push_in_domain);
  second.set(domain_range_pop, pop);
  second.set(domain_register_ascii, register_ascii);
  second.set(domain_register_wide, register_wide);
  second.set(domain_create_ascii, create_domain_ascii);
  second.set(domain_create_wide, create_domain_wide);
  is_initialized.store(true, std::memory_order_relaxed);
  return 1;
}

}  // namespace memprof::inline MEMPROF_ABI::detail::nvtx
