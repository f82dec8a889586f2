#pragma once

#include "own_allocators.hpp"
#include "unseen.hpp"
#include "unseen_python.hpp"

#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/trace/fact_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// @file
/// The table of what the program allocates past this library.

namespace memprof_preload {

/// The table of what is not captured, which outlives the program's last call.
[[nodiscard]] inline std::vector<memprof::missing_source>& missing_sources() {
  static auto* const rows = new std::vector<memprof::missing_source>;
  return *rows;
}

/// Adds to the table of what is not captured, unless it has that source. Throws `std::bad_alloc`.
inline void report_missing(std::string_view source, std::string why_not) {
  std::vector<memprof::missing_source>& rows = missing_sources();
  if (std::any_of(rows.begin(), rows.end(), [&](const memprof::missing_source& row) { return row.source == source; })) return;
  rows.push_back({std::string{source}, std::move(why_not)});
  memprof::extend::event_sink{}.add_facts(memprof::extend::to_table(rows));
}

/// Adds the small objects of a Python interpreter, unless `malloc` or the pages that it maps have them. Throws `std::bad_alloc`.
inline void report_python(bool records_mappings, bool is_environment_ignored) {
  if (records_mappings) return;
  const python_objects found = find_python_objects(is_environment_ignored);
  if (found == python_objects::in_arenas)
    report_missing("Python's small objects", "they are in memory from mmap; with PYTHONMALLOC=malloc they are recorded");
  if (found == python_objects::in_arenas_whatever_is_asked) {
    report_missing("Python's small objects",
                   "they are in memory from mmap, which --mmap records: Python ignored PYTHONMALLOC (-E or -I)");
  }
}

/// Adds allocators that the program calls by other names than `malloc`. Throws `std::bad_alloc`.
inline void report_own_allocators(bool records_mappings, bool is_first) {
  if (is_first && !records_mappings && is_called()) {
    find_linked_allocators([](const char* function) {
      report_missing(function, "it is an allocator of the program's own, linked into it; --mmap records the pages that it maps");
    });
  }
  find_exported_allocators([&](const char* function, std::string_view library, bool is_recorded_heap) {
    if (records_mappings && !is_recorded_heap) return;
    const std::string owner = library.empty() ? "the program" : std::string{library};
    report_missing(function, "that of " + owner + " does not call malloc" +
                                 (is_recorded_heap ? "" : "; --mmap records the pages that it maps"));
  });
}

/// Adds the libraries that call another `malloc` than this library's. Throws `std::bad_alloc`.
inline void report_bypassing_libraries() {
  std::array<bypassing_library, 16> found{};
  const std::size_t count = find_bypassing_libraries(found);
  for (const bypassing_library& library : std::span{found}.first(count)) {
    report_missing(file_name_of(library.path), "it was opened with RTLD_DEEPBIND, by which it calls the malloc of " +
                                                   std::string{file_name_of(library.called)});
  }
}

/// What this library records of the program beside `malloc`, and whether the program's options have a Python interpreter ignore
/// its variables.
struct recorded_parts {
  bool has_mappings = false;
  bool is_environment_ignored = false;
};

/// Adds what the program allocates past this library, as far as its libraries have been loaded. Throws `std::bad_alloc`.
inline void report_other_heaps(const recorded_parts& parts, bool is_first) {
  report_python(parts.has_mappings, parts.is_environment_ignored);
  report_own_allocators(parts.has_mappings, is_first);
  if (!is_called()) return report_missing("malloc", "the program has a malloc of its own, linked into it");
  if (const std::string library = library_with_operator_new(); !library.empty())
    report_missing("operator new", "that of " + library + " does not call malloc");
  report_bypassing_libraries();
}

}  // namespace memprof_preload
