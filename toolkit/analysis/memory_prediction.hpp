#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/fact/predicted_memory.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/memory_fit.hpp>
#include <memprof/trace/cuda_context.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

/// @file
/// What a CUDA device must have for a run: a sum of named parts, each an interval where it is uncertain, and whether it fits.

namespace memprof::inline MEMPROF_ABI {

class allocation_sequence;
struct profile;
struct space_profile;

/// The parts of what a run takes of a device. In bytes.
struct memory_prediction {
  std::vector<predicted_memory> parts;

  /// What is expected: the sum of all parts.
  [[nodiscard]] std::int64_t bytes() const noexcept;
  /// The least and the most; parts of which nobody knows a limit count as expected.
  [[nodiscard]] std::int64_t least() const noexcept;
  [[nodiscard]] std::int64_t most() const noexcept;
  /// What is expected besides blocks and what is reserved for them.
  [[nodiscard]] std::int64_t beside_blocks() const noexcept;
  /// The part of that name, or a null pointer.
  [[nodiscard]] const predicted_memory* find(std::string_view part) const noexcept;
};

/// The parts of a run in one of its spaces: its blocks at their peak by category, what the allocator adds to them (`peaks`: on a
/// device without a limit), the context, and what may come on top because the run's facts say that kernels were estimated.
[[nodiscard]] memory_prediction predict_memory(const profile& run, const space_profile& space,
                                               const caching_allocator_stats& peaks, const cuda_context& context);

/// How sure it is that something fits.
enum class fit_certainty : std::uint8_t {
  fits,            ///< even if each uncertain part takes the most
  probably_fits,   ///< as expected, but not if each takes the most
  probably_fails,  ///< not as expected, but it does if each takes the least
  does_not_fit,    ///< not even then
};

/// Names of the `fit_certainty` values, in order.
inline constexpr std::array<std::string_view, 4> fit_certainty_names{"fits", "probably_fits", "probably_fails", "does_not_fit"};

/// Whether a run fits on a device, with all parts.
struct predicted_fit {
  memory_fit fit;  ///< as expected
  memory_prediction prediction;
  fit_certainty certainty = fit_certainty::does_not_fit;

  [[nodiscard]] bool fits() const noexcept { return fit.fits(); }
};

/// Judges the steps of a run in a space of its profile. `options.capacity` is the device's, `options.context` is ignored. Costs two
/// or three replays. Raises an error if the options are invalid.
[[nodiscard]] predicted_fit predict_fit(const allocation_sequence& sequence, const profile& run, const space_profile& space,
                                        caching_allocator_options options, const cuda_context& context);

/// How sure it is that the steps fit beside what the parts take that are not blocks; `fit` is the answer as expected.
[[nodiscard]] fit_certainty certainty_of(const allocation_sequence& sequence, const caching_allocator_options& options,
                                         const memory_fit& fit, const memory_prediction& prediction);

}  // namespace memprof::inline MEMPROF_ABI
