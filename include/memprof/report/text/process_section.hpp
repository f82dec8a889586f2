#pragma once

#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/page.hpp>
#include <memprof/report/text/quantity.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// @file
/// What the process held beside the recorded blocks.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether a good part of the process is memory that no source recorded, or that may be.
[[nodiscard, gnu::cold]] inline bool has_unexplained_memory(const process_account& of) {
  return has_unrecorded_heap(of) || (!of.is_heap_known() && is_notable(of.other_anonymous, of.reading.resident_bytes));
}

/// ", 307 MiB code, files and stacks": what is neither recorded nor in blocks of `malloc` that are not, by its notable parts.
[[gnu::cold]] inline void add_other_parts(page_line& line, const process_account& of) {
  std::int64_t rest = of.files;  // and what is not notable
  const auto add = [&](std::int64_t bytes, const char* what) {
    const bool is_shown = is_notable(bytes, of.reading.resident_bytes);
    if (is_shown) {
      line.add(", " + short_bytes(bytes) + " " + what);
    } else {
      rest += bytes;
    }
    return is_shown;
  };
  add(of.heap_before, "heap from before the capture");
  add(of.free_heap, "free heap");
  add(of.profiler, "memprof");
  const bool has_mappings =
      add(of.other_anonymous, of.is_heap_known() ? "other mappings" : "not recorded (another malloc, or mmap)");
  line.add(", " + short_bytes(rest) + (has_mappings ? " code and files" : " code, files and stacks"));
}

/// "Process 1.90 GiB resident: 1.20 GiB recorded, 410 MiB heap not recorded (malloc), 307 MiB code, files and stacks", or where
/// the recorded blocks explain the process, "1.90 GiB resident: 1.80 GiB recorded, 20.0 MiB heap not recorded, 82.0 MiB other".
[[nodiscard, gnu::cold]] inline page_line process_line(const process_account& of) {
  const std::int64_t resident = of.reading.resident_bytes;
  page_line line;
  if (resident < 0) {  // the program has closed the file
    line.add("resident unknown: " + short_bytes(of.reading.recorded_bytes) + " recorded, ");
    return line.add(short_bytes(of.reading.unrecorded_heap_bytes) + " heap not recorded", emphasis::alarm).add(" (malloc)");
  }
  const std::int64_t most = std::max<std::int64_t>(0, resident - of.files);
  const auto part = [&](std::int64_t bytes, std::int64_t known) {
    return of.is_split_known || known <= 0 ? short_bytes(bytes)
                                           : "up to " + short_bytes(std::clamp<std::int64_t>(known, 0, most));
  };
  const bool is_unexplained = has_unexplained_memory(of);
  line.add(short_bytes(resident), emphasis::strong);
  line.add(" resident: " + part(of.recorded, of.reading.recorded_bytes) + " recorded");
  if (of.is_heap_known()) {
    const emphasis how = has_unrecorded_heap(of) ? emphasis::alarm : emphasis::none;
    line.add(", ").add(part(of.unrecorded_heap, of.reading.unrecorded_heap_bytes) + " heap not recorded", how);
    if (is_unexplained) line.add(" (malloc)");
  }
  if (is_unexplained) {
    add_other_parts(line, of);
  } else {
    line.add(", " + short_bytes(resident - of.recorded - of.unrecorded_heap) + " other");
  }
  if (is_notable(of.not_resident, resident)) line.add("; a further " + short_bytes(of.not_resident) + " of blocks not resident");
  return line;
}

/// Nothing if the capture did not look.
[[nodiscard, gnu::cold]] page_section process_section(const auto& source) {
  page_section section;
  section.heading = "Process";
  const std::optional<process_account> found = process_account_of(source);
  if (found) section.lines.push_back(process_line(*found));
  return section;
}

/// What was not recorded, and how to record it.
[[nodiscard, gnu::cold]] inline page_line unrecorded_heap_line(const process_account& of) {
  page_line line{of.is_heap_known() ? short_bytes(of.reading.unrecorded_heap_bytes) + " of heap not recorded: "
                                    : short_bytes(of.other_anonymous) + " not recorded: "};
  if (of.reading.records_operator_new == 0)
    return line.add(
        "add #include <memprof/backend/new_delete.hpp> to one .cpp file, which records operator new (not malloc, as in C "
        "libraries and arenas)");
  return line.add(std::string{"memory from malloc, calloc or posix_memalign"} + (of.is_heap_known() ? "" : ", or mmap") +
                  ", as in C libraries (see `heaptrack PROGRAM`) or an arena (record its blocks by an event_sink)");
}

/// Why nothing was recorded, and the line to add; nothing if that is not known.
[[nodiscard, gnu::cold]] std::vector<std::string> causes_of_silence(const auto& source) {
  bool has_readings = false;
  bool records_operator_new = false;
  for_each_fact<process_memory>(source.facts, [&](const process_memory& reading) {
    has_readings = true;
    records_operator_new = records_operator_new || reading.records_operator_new != 0;
  });
  if (!has_readings) return {};
  if (records_operator_new) {
    if (const std::optional<process_account> process = process_account_of(source); process && has_unrecorded_heap(*process)) {
      // The numbers below say how much it is, and the cure.
      return {"operator new is recorded, but was not called during the capture; the memory below is from malloc."};
    }
    return {"operator new is recorded, but was not called during the capture:",
            "  hold the guard until the work is done: auto capture = memprof::begin_capture();"};
  }
  return {"Nothing in this program records its allocations. Add to one .cpp file, for operator new:",
          "  #include <memprof/backend/new_delete.hpp>", "or allocate from a memprof::memory_resource."};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
