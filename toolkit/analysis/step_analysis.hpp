#pragma once

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/analysis/breakdown_text.hpp>
#include <memprof/toolkit/analysis/memory_breakdown.hpp>
#include <memprof/toolkit/analysis/reserved_causes.hpp>
#include <memprof/trace/device_description.hpp>

#include <optional>
#include <string>
#include <vector>

/// @file
/// The recordings of training steps: what the memory of each consists of, whether it fits, and why allocators reserved more.

namespace memprof::inline MEMPROF_ABI {

/// What is asked of each recording.
struct step_question {
  std::string space;        ///< its name; "all"; empty: the one that summaries lead with
  breakdown_options sizes;  ///< `device_memory`, with all spaces, is that of the leading one
  /// Of which a space has the memory with its name, and else the leading one that of tensors: host memory is not device memory.
  std::optional<device_description> device;
};

/// Why allocators reserved more than was allocated, in one file.
struct file_causes {
  std::string file;
  std::vector<reserved_causes> spaces;  ///< at least one
};

/// All that was found in the recordings.
struct step_analysis {
  std::vector<analyzed_space> spaces;
  std::vector<file_causes> causes;
};

/// Breaks down the memory spaces of a profile that are asked for. Throws `memprof::error` if it has none, or none of that name.
[[nodiscard]] std::vector<analyzed_space> analyze_spaces(profile of, const step_question& question);

/// Whether the peaks of all spaces with a known device fit; nothing if none has one.
[[nodiscard]] std::optional<bool> all_fit(const std::vector<analyzed_space>& analyzed);

/// The tables of the spaces, then the causes of each file under its name. Lines are folded and names shortened to
/// `columns`, at least 60; 0: they are as long as they are.
[[nodiscard]] std::string to_text(const step_analysis& of, const breakdown_options& sizes, std::size_t columns = 0);

}  // namespace memprof::inline MEMPROF_ABI
