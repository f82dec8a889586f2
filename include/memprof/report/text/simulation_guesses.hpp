#pragma once

#include <memprof/detail/saturating.hpp>
#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/assumed_size.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/marked_text.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

/// @file
/// What a simulated run had to guess: scratch memory of kernels, sizes that depend on data, values that the program read.

namespace memprof::inline MEMPROF_ABI::detail {

/// What a simulated run had to guess.
[[gnu::cold]] inline void add_estimates(marked_text& lines, const profile& source) {
  std::int64_t operators = 0;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  approximated_operation most;
  for_each_fact<approximated_operation>(source.facts, [&](approximated_operation& row) {
    calls = add_saturating(calls, row.count);
    bytes = add_saturating(bytes, row.bytes);
    if (++operators == 1 || row.bytes > most.bytes) most = std::move(row);
  });
  if (operators == 0) return;
  lines.add_count(calls, "call", "calls").add(" of ").add_count(operators, "operator", "operators").add(" estimated (");
  lines.add_bytes(bytes).add(operators > 1 ? "), most by " : "): ");
  lines.add_name(most.name).add(" (").add_name(most.cause).add(")").end_line();
}

/// An operator, and the operation around it if there is one.
[[gnu::cold]] inline void add_place(marked_text& line, const std::string& name, const std::string& operation) {
  line.add_name(name.empty() ? "the program" : name);
  if (!operation.empty()) line.add(" in ").add_name(operation);
}

/// Reads of values that a simulated run did not know, of one kind, and the most frequent reader.
struct unknown_reads_of_kind {
  std::int64_t count = 0;
  unknown_read most;

  [[gnu::cold]] void add(unknown_read& row) {
    count = add_saturating(count, row.count);
    if (most.count == 0 || row.count > most.count) most = std::move(row);
  }
  [[gnu::cold]] void write_to(marked_text& lines, const char* one, const char* many, const char* consequence) const {
    if (count == 0) return;
    lines.add_count(count, one, many).add(" unknown to the simulation (");
    add_place(lines, most.name, most.operation);
    lines.add(count == most.count ? ")" : " and others)").add(consequence).end_line();
  }
};

/// What a simulated run had to assume: sizes that depend on data, and values that the program read.
struct assumptions {
  std::int64_t sizes = 0;  ///< calls with such sizes
  std::int64_t size_bytes = 0;
  assumed_size most;               ///< the row that can be wrong by the most bytes
  unknown_reads_of_kind steering;  ///< truth values and integers
  unknown_reads_of_kind numbers;

  [[nodiscard]] bool decide() const noexcept { return sizes != 0 || steering.count != 0; }
};

/// How many bytes more the calls of a row would have allocated with the greatest sizes, about; none if those are unknown.
[[nodiscard, gnu::cold]] inline std::optional<std::int64_t> bytes_too_few(const assumed_size& row) noexcept {
  if (row.assumed <= 0 || row.most == 0) return std::nullopt;
  if (row.most <= row.assumed) return 0;
  const double times = static_cast<double>(row.most - row.assumed) / static_cast<double>(row.assumed);
  const double bytes = static_cast<double>(row.bytes) * times;
  return bytes < 9e18 ? std::llround(bytes) : INT64_MAX;
}

[[nodiscard, gnu::cold]] inline assumptions assumptions_of(const profile& source) {
  assumptions found;
  for_each_fact<assumed_size>(source.facts, [&](assumed_size& row) {
    const auto range = [](const assumed_size& of) { return std::max(of.bytes, bytes_too_few(of).value_or(0)); };
    if (found.sizes == 0 || range(row) > range(found.most)) found.most = row;
    found.sizes = add_saturating(found.sizes, row.count);
    found.size_bytes = add_saturating(found.size_bytes, row.bytes);
  });
  for_each_fact<unknown_read>(source.facts,
                              [&](unknown_read& row) { (row.steers != 0 ? found.steering : found.numbers).add(row); });
  return found;
}

/// The assumption that can be wrong by the most, and by how much: a size before a value, whose effect is unknown.
[[gnu::cold]] inline void add_deciding_assumption(marked_text& line, const assumptions& of) {
  if (of.sizes == 0) {
    if (of.steering.count == 0) {
      line.add("rests on what the simulation assumed");
      return;
    }
    add_place(line, of.steering.most.name, of.steering.most.operation);
    line.add(" read what the simulation had to assume; how far the numbers are off is unknown");
    return;
  }
  add_place(line, of.most.name, of.most.operation);
  line.add(" assumed ").add_count(of.most.assumed);
  if (of.most.most != 0) line.add(" of at most ").add_count(of.most.most);
  line.add(" results, at most ").add_bytes(of.most.bytes).add(" too many");
  const std::optional<std::int64_t> few = bytes_too_few(of.most);
  if (!few.has_value()) line.add(" or too few by an unknown number");
  if (few.value_or(0) != 0) line.add(" or ").add_bytes(*few).add(" too few");
}

[[gnu::cold]] inline void add_assumptions(marked_text& lines, const assumptions& of) {
  if (of.sizes != 0) {
    lines.add_count(of.sizes, "call", "calls").add(" with sizes that depend on unknown data (").add_bytes(of.size_bytes);
    lines.add("), most by ");
    add_place(lines, of.most.name, of.most.operation);
    lines.add(": ").add_name(of.most.cause).end_line();
  }
  of.steering.write_to(lines, "read of a truth value or integer", "reads of truth values or integers",
                       ": the program may take another path");
}

}  // namespace memprof::inline MEMPROF_ABI::detail
