#pragma once

#include <memprof/toolkit/estimate/fit_search.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The result for one way of training.
struct fit_row {
  std::string name;  ///< "all kept", "blocks recomputed"
  fit_answer answer;
};

/// A step of a given size, and whether it fits on the device.
struct asked_step {
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 1;
  bool fits = false;             ///< with all activations kept
  bool fits_recomputed = false;  ///< with recomputed blocks
};

/// The answer in a sentence: "Yes, with blocks recomputed: a step of B=1, T=4096 fits on gpu-80gb; with all activations kept it
/// does not."
[[nodiscard]] std::string fit_sentence(const asked_step& asked, std::string_view device);

/// A table of the greatest sizes that fit; `size_name` says what is counted. GiB is 2^30 bytes. `columns`: 0 for any width.
[[nodiscard]] std::string to_text(const std::vector<fit_row>& rows, std::string_view size_name, std::size_t columns = 0);

}  // namespace memprof::inline MEMPROF_ABI
