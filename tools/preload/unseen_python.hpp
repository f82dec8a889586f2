#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

/// @file
/// Whether a Python interpreter allocates past `malloc`.

// Null where neither the program nor a library that it is linked to is a Python interpreter; the flag also where that has none
// (Python 3.15).
extern "C" {
[[gnu::weak]] void* PyObject_Malloc(std::size_t);   // NOLINT(readability-identifier-naming)
[[gnu::weak]] extern int Py_IgnoreEnvironmentFlag;  // NOLINT(readability-identifier-naming)
}

namespace memprof_preload {

/// Whether options of `python3` have it ignore its variables: -E or -I, alone or among others, before the script.
[[nodiscard]] inline bool ignores_environment(int count, const char* const* words) noexcept {
  if (count == 0) return false;
  const std::string_view path = words[0];
  if (!path.substr(path.rfind('/') + 1).starts_with("python")) return false;  // another program's words
  for (int index = 1; index < count; ++index) {
    const std::string_view word = words[index];
    if (word.starts_with("--")) {
      if (word == "--check-hash-based-pycs") ++index;
      continue;
    }
    if (word.size() < 2 || word[0] != '-') return false;
    for (std::size_t at = 1; at < word.size(); ++at) {
      if (word[at] == 'E' || word[at] == 'I') return true;
      if (word[at] == 'c' || word[at] == 'm') return false;
      if (word[at] != 'W' && word[at] != 'X') continue;
      if (at + 1 == word.size()) ++index;  // the value is a word of its own
      break;
    }
  }
  return false;
}

/// Where the interpreter's small objects are.
enum class python_objects { none, in_malloc, in_arenas, in_arenas_whatever_is_asked };

/// The same of the program, now. `ignores`: its options say so; an interpreter that has begun also tells by itself.
[[nodiscard]] inline python_objects find_python_objects(bool ignores) noexcept {
  if (&::PyObject_Malloc == nullptr) return python_objects::none;
  const char* const asked = std::getenv("PYTHONMALLOC");
  if (asked == nullptr || !std::string_view{asked}.starts_with("malloc"))  // or "malloc_debug"
    return python_objects::in_arenas;
  const bool has_ignored = ignores || (&::Py_IgnoreEnvironmentFlag != nullptr && ::Py_IgnoreEnvironmentFlag != 0);
  return has_ignored ? python_objects::in_arenas_whatever_is_asked : python_objects::in_malloc;
}

}  // namespace memprof_preload
