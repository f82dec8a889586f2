#pragma once

#include <memprof/profile/fact/approximated_operation.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/fact/unknown_read.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/report/text/text_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

/// @file
/// The parts of the text report about PyTorch's operators: which allocated most, and which a simulated run only estimated or did
/// not know.

namespace memprof::detail {

/// A row that says how many were left out of a table.
void append_further(auto& text, std::size_t all, std::size_t shown, const char* what) {
  if (shown < all) text += "    (" + std::to_string(all - shown) + " more " + what + ")\n";
}

/// The first operators of the profile, which are those that it puts first.
void append_pytorch_operations(auto& text, const auto& operations, const text_options& options) {
  if (operations.empty()) return;
  const std::size_t shown = std::min(options.pytorch_operations, operations.size());
  text += "PyTorch operators:\n      Calls       CPU time       CPU memory    Device memory  Operator and input shapes\n";
  for (std::size_t index = 0; index < shown; ++index) {
    constexpr std::size_t width = 15;
    constexpr double ns_per_ms = 1e6;
    const pytorch_operation& row = operations[index];
    text += right_aligned(std::to_string(row.count), width - 4) +
            right_aligned(decimal(static_cast<double>(row.cpu_time_ns) / ns_per_ms, 3) + " ms", width) +
            right_aligned(signed_megabytes(row.cpu_memory), width + 2) +
            right_aligned(signed_megabytes(row.device_memory), width + 2) + "  " + on_one_line(row.name) +
            (row.input_shapes.empty() ? "" : " " + on_one_line(row.input_shapes)) + '\n';
  }
  append_further(text, operations.size(), shown, "operators or shapes");
}

/// What was estimated, so that nobody takes it for exact.
void append_approximations(auto& text, const auto& approximations, const text_options& options) {
  if (approximations.empty()) return;
  const std::size_t shown = std::min(options.pytorch_operations, approximations.size());
  text += "Estimated, not exact:\n";
  for (std::size_t index = 0; index < shown; ++index) {
    const approximated_operation& row = approximations[index];
    text += "  " + on_one_line(row.name) + ": " + counted(row.count, "call", "calls") + ", " + megabytes(row.bytes) + "; " +
            on_one_line(row.cause) + '\n';
  }
  append_further(text, approximations.size(), shown, "operations");
}

/// Values that a simulated run did not know, after which the program may have gone another way.
void append_unknown_reads(auto& text, const auto& reads, const text_options& options) {
  if (reads.empty()) return;
  const std::size_t shown = std::min(options.pytorch_operations, reads.size());
  text += "Read without being known (zeros were given; the program may take another way with real data):\n";
  for (std::size_t index = 0; index < shown; ++index) {
    const unknown_read& row = reads[index];
    text += "  " + (row.name.empty() ? std::string{"(memory)"} : on_one_line(row.name)) + ": " +
            counted(row.count, "time", "times") + (row.operation.empty() ? "" : " in " + on_one_line(row.operation)) + '\n';
  }
  append_further(text, reads.size(), shown, "reads");
}

}  // namespace memprof::detail
