#include <memprof/config.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/source_frame.hpp>
#include <memprof/toolkit/symbols/named_stacks.hpp>
#include <memprof/toolkit/symbols/symbolizer.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// Whether the function allocates for whoever calls it, as C and C++ name them.
[[nodiscard]] bool is_allocation_function(std::string_view name) {
  constexpr std::array<std::string_view, 12> functions{"malloc",         "calloc",        "realloc",        "reallocarray",
                                                       "posix_memalign", "aligned_alloc", "memalign",       "valloc",
                                                       "pvalloc",        "operator new",  "operator new[]", "__libc_memalign"};
  return std::find(functions.begin(), functions.end(), name) != functions.end();
}

/// Whether the call is the hook's, or the function by which the program called it.
[[nodiscard]] bool is_of_hook(const source_frame& call) {
  const std::string name = detail::bare_function_name(call.function);
  return call.module == "libmemprof_preload.so" || name.starts_with("memprof::") || is_allocation_function(name);
}

/// Whether the call is in Python, whose stacks have no modules.
[[nodiscard]] bool is_python(const source_frame& call) {
  return call.module.empty() && (call.file.ends_with(".py") || call.file.starts_with('<') || call.file.ends_with(".pyw"));
}

/// Whether a call in Python is of torch, or of Python's own library.
[[nodiscard]] bool is_of_python_library(const source_frame& call) {
  const auto is_in = [&](std::string_view folder) { return call.file.find(folder) != std::string::npos; };
  if (is_in("/site-packages/") || is_in("/dist-packages/")) return is_in("-packages/torch/");
  return call.file.starts_with("<frozen ") || is_in("/lib/python3") || is_in("/lib64/python3");
}

/// Whether the call is of a library of C, C++ or Python, or allocates for whoever calls it.
[[nodiscard]] bool is_of_library(const source_frame& call) {
  constexpr std::array<std::string_view, 5> libraries{"libc.so.", "libstdc++.so.", "ld-linux", "libc++.so.", "libpthread.so."};
  const auto begins_module = [&](std::string_view part) { return call.module.starts_with(part); };
  if (std::any_of(libraries.begin(), libraries.end(), begins_module)) return true;
  if (is_python(call)) return is_of_python_library(call);
  return detail::is_library_function(detail::bare_function_name(call.function));
}

[[nodiscard]] std::string name_of_call(const source_frame& call) {
  if (!call.function.empty()) return detail::short_function_name(call.function);
  std::array<char, 24> offset{};
  (void)std::snprintf(offset.data(), offset.size(), "0x%llx", static_cast<unsigned long long>(call.offset));
  return call.module.empty() ? offset.data() : call.module + "+" + offset.data();
}

}  // namespace

std::string to_text(const source_frame& call) {
  return detail::frame_name(name_of_call(call), call.file, call.line > 0 ? std::to_string(call.line) : "");
}

std::string caller_of(const std::vector<source_frame>& calls) {
  if (calls.empty()) return {};
  const auto who = std::find_if_not(calls.begin(), calls.end(), is_of_library);
  if (who == calls.end()) return to_text(calls.front());
  return who == calls.begin() || is_python(*who) ? to_text(*who) : name_of_call(*(who - 1)) + " in " + to_text(*who);
}

const std::vector<source_frame>& named_stacks::calls_at(const detail::stack_frame& frame) {
  const auto [found, is_new] = known_calls_.try_emplace({frame.module, frame.offset});
  if (is_new) found->second = symbols_.calls_at(stacks_.module_of(frame), frame.offset);
  return found->second;
}

std::vector<source_frame> named_stacks::calls(extend::label stack) {
  return calls_until(stack, [](const source_frame&) { return false; });
}

std::vector<std::string> named_stacks::texts(extend::label stack) {
  std::vector<std::string> found;
  for (const source_frame& call : calls(stack)) found.push_back(to_text(call));
  std::reverse(found.begin(), found.end());
  return found;
}

std::string named_stacks::caller(extend::label stack) {
  const auto [found, is_new] = known_callers_.try_emplace(stack);
  // What called it does not matter, and most of a stack's names are never looked for.
  if (is_new) found->second = caller_of(calls_until(stack, [](const source_frame& call) { return !is_of_library(call); }));
  return found->second;
}

std::function<std::vector<std::string>(extend::name_view names, extend::label stack)> calls_by_name() {
  return [named = std::make_shared<std::optional<named_stacks>>()](extend::name_view names, extend::label stack) {
    if (!named->has_value()) named->emplace(names);
    return (*named)->texts(stack);
  };
}

std::function<std::vector<std::vector<source_frame>>(extend::name_view names, extend::label stack)> frames_by_name() {
  return [named = std::make_shared<std::optional<named_stacks>>()](extend::name_view names, extend::label stack) {
    if (!named->has_value()) named->emplace(names);
    return (*named)->frames(stack);
  };
}

std::vector<std::vector<source_frame>> named_stacks::frames(extend::label stack) {
  const std::vector<detail::stack_frame>& frames = stacks_.frames(stack);
  std::vector<std::vector<source_frame>> all;
  for (auto frame = frames.rbegin() + unnamed_hook_frames(frames); frame != frames.rend(); ++frame) {
    std::vector<source_frame> calls = calls_at(*frame);
    if (all.empty()) calls.erase(calls.begin(), std::find_if_not(calls.begin(), calls.end(), is_of_hook));
    if (!calls.empty()) all.push_back(std::move(calls));
  }
  return all;
}

std::ptrdiff_t named_stacks::unnamed_hook_frames(const std::vector<detail::stack_frame>& frames) {
  constexpr std::ptrdiff_t most = 8;
  std::ptrdiff_t count = 0;
  for (auto frame = frames.rbegin(); frame != frames.rend() && count <= most; ++frame, ++count) {
    if (frame->module == 0 || stacks_.module_of(*frame).path != stacks_.module_of(frames.back()).path) return 0;
    const std::string& function = calls_at(*frame).back().function;
    if (!function.empty()) return is_allocation_function(detail::bare_function_name(function)) ? count : 0;
  }
  return 0;
}

template <class IsLast>
std::vector<source_frame> named_stacks::calls_until(extend::label stack, IsLast is_last) {
  const std::vector<detail::stack_frame>& frames = stacks_.frames(stack);
  std::vector<source_frame> all;
  for (auto frame = frames.rbegin() + unnamed_hook_frames(frames); frame != frames.rend(); ++frame) {
    for (const source_frame& call : calls_at(*frame)) {
      if (all.empty() && is_of_hook(call)) continue;
      all.push_back(call);
      if (is_last(call)) return all;
    }
  }
  return all;
}

}  // namespace memprof::inline MEMPROF_ABI
