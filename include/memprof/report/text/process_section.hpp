#pragma once

#include <memprof/profile/fact/process_memory.hpp>
#include <memprof/profile/process_account.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/answer.hpp>
#include <memprof/report/text/marked_text.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

/// @file
/// What the process held beside the recorded blocks.

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether a good part of the process is memory that no source recorded, or that may be.
[[nodiscard, gnu::cold]] inline bool has_unexplained_memory(const process_account& of) {
  return has_unrecorded_heap(of) || (!of.is_heap_known() && is_notable(of.other_anonymous, of.reading.resident_bytes));
}

/// "1.20 GiB"; "up to 1.20 GiB" of what may be resident, if the account could not tell what is.
[[gnu::cold]] inline marked_text& add_resident_part(marked_text& line, const process_account& of, std::int64_t bytes,
                                                    std::int64_t known, emphasis how = emphasis::none) {
  if (of.is_split_known || known <= 0) return line.add_bytes(bytes, how);
  const std::int64_t most = std::max<std::int64_t>(0, of.reading.resident_bytes - of.files);
  return line.add("up to ", how).add_bytes(std::clamp<std::int64_t>(known, 0, most), how);
}

/// ", 307 MiB code, files and stacks": what is neither recorded nor in blocks of `malloc` that are not, by its notable parts.
[[gnu::cold]] inline void add_other_parts(marked_text& line, const process_account& of) {
  const struct {
    std::int64_t bytes;
    const char* what;
  } parts[] = {
      {of.heap_before, " heap from before the capture"},
      {of.free_heap, " free heap"},
      {of.profiler, " memprof"},
      {of.other_anonymous, of.is_heap_known() ? " other mappings" : " not recorded (another malloc, or mmap)"},
  };
  std::int64_t rest = of.files;  // and what is not notable
  for (const auto& part : parts) {
    if (is_notable(part.bytes, of.reading.resident_bytes)) {
      line.add(", ").add_bytes(part.bytes).add(part.what);
    } else {
      rest += part.bytes;
    }
  }
  const bool has_mappings = is_notable(of.other_anonymous, of.reading.resident_bytes);
  line.add(", ").add_bytes(rest).add(has_mappings ? " code and files" : " code, files and stacks");
}

/// "1.90 GiB resident: 1.20 GiB recorded, 410 MiB heap not recorded (malloc), 307 MiB code, files and stacks", or where the
/// recorded blocks explain the process, "1.90 GiB resident: 1.80 GiB recorded, 20.0 MiB heap not recorded, 82.0 MiB other".
[[gnu::cold]] inline void add_process(marked_text& line, const process_account& of) {
  const std::int64_t resident = of.reading.resident_bytes;
  if (resident < 0) {  // the program has closed the file
    line.add("resident unknown: ").add_bytes(of.reading.recorded_bytes).add(" recorded, ");
    line.add_bytes(of.reading.unrecorded_heap_bytes, emphasis::alarm).add(" heap not recorded", emphasis::alarm).add(" (malloc)");
    return;
  }
  if (of.is_only_first) {
    line.add_bytes(resident).add(" resident when the capture began, not read later");
    return;
  }
  const bool is_unexplained = has_unexplained_memory(of);
  line.add_bytes(resident, emphasis::strong).add(" resident");
  if (const std::int64_t limit = of.reading.container_limit_bytes; limit >= 0)
    line.add(" of ").add_bytes(limit).add(" that the container may take");
  line.add(": ");
  add_resident_part(line, of, of.recorded, of.reading.recorded_bytes).add(" recorded");
  if (of.is_heap_known()) {
    const emphasis how = has_unrecorded_heap(of) ? emphasis::alarm : emphasis::none;
    line.add(", ");
    add_resident_part(line, of, of.unrecorded_heap, of.reading.unrecorded_heap_bytes, how);
    line.add(" heap not recorded", how).add(is_unexplained ? " (malloc)" : "");
  }
  if (is_unexplained) {
    add_other_parts(line, of);
  } else {
    line.add(", ").add_bytes(resident - of.recorded - of.unrecorded_heap).add(" other");
  }
  if (is_notable(of.not_resident, resident)) line.add("; a further ").add_bytes(of.not_resident).add(" of blocks not resident");
}

/// Whether an unfinished run has gone on since: its last segment began later.
[[nodiscard, gnu::cold]] inline bool is_stale(const process_memory& reading, const profile& source) noexcept {
  return !source.complete && !source.segments.empty() && reading.time_ns < source.segments.back().begin_ns;
}

/// Nothing if the capture did not look.
[[gnu::cold]] inline void process_section(summary_section& section, const answer_topic& topic) {
  const std::optional<process_account> found = process_account_of(topic.source);
  if (!found) return;
  add_process(section.lines, *found);
  if (!found->is_only_first && is_stale(found->reading, topic.source))
    section.lines.add("; read at ").add_time(found->reading.time_ns);
  section.lines.end_line();
}

/// Whether the process was Python's interpreter, whose programs include no headers.
[[nodiscard, gnu::cold]] inline bool is_python(const profile& source) noexcept {
  std::string_view program = source.process.command_line;
  program = program.substr(0, program.find(' '));
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

/// What was not recorded, and how to record it.
[[gnu::cold]] inline void add_unrecorded_heap(marked_text& line, const profile& source, const process_account& of) {
  if (of.is_heap_known()) {
    line.add_bytes(of.reading.unrecorded_heap_bytes).add(" of heap not recorded: ");
  } else {
    line.add_bytes(of.other_anonymous).add(" not recorded: ");
  }
  if (is_python(source)) {
    line.add("memory of the interpreter and of its modules: `memprof run -- python3 SCRIPT` records every malloc");
  } else if (of.reading.records_operator_new == 0) {
    line.add("add #include <memprof/backend/malloc.hpp> to one .cpp file, which records malloc and operator new");
  } else if (of.is_heap_known()) {
    line.add(
        "memory from malloc, calloc or posix_memalign, as in C libraries: include <memprof/backend/malloc.hpp> in place of "
        "new_delete.hpp");
  } else {
    line.add(
        "memory from malloc or mmap, as in C libraries (see <memprof/backend/malloc.hpp>) or an arena (record its blocks by an "
        "event_sink)");
  }
}

/// Lines that say why nothing was recorded, and what to add; nothing if that is not known.
[[nodiscard, gnu::cold]] inline std::string_view causes_of_silence(const profile& source) {
  bool has_readings = false;
  bool records_operator_new = false;
  for_each_fact<process_memory>(source.facts, [&](const process_memory& reading) {
    has_readings = true;
    records_operator_new = records_operator_new || reading.records_operator_new != 0;
  });
  if (!has_readings) return {};
  if (is_python(source)) {
    return "No tensor of PyTorch was allocated on the CPU, and no block was named by memprof.track or a memprof.MemorySpace.\n"
           "`memprof run -- python3 SCRIPT` records every malloc.\n";
  }
  if (!records_operator_new) {
    return "Nothing in this program records its allocations. Add to one .cpp file, for operator new:\n"
           "  #include <memprof/backend/new_delete.hpp>\n"
           "or allocate from a memprof::memory_resource.\n";
  }
  if (const std::optional<process_account> process = process_account_of(source); process && has_unrecorded_heap(*process)) {
    // The numbers below say how much it is, and the cure.
    return "operator new is recorded, but was not called during the capture; the memory below is from malloc.\n";
  }
  return "operator new is recorded, but was not called during the capture:\n"
         "  hold the guard until the work is done: auto capture = memprof::begin_capture();\n";
}

}  // namespace memprof::inline MEMPROF_ABI::detail
