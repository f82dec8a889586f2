#pragma once

#include <memprof/config.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/session_options.hpp>

#include <cstdint>

/// @file
/// The functions that `session` calls; implemented in record/session_life.hpp.

namespace memprof::inline MEMPROF_ABI::detail {

/// Begins a capture that no guard ends, and returns its number.
using begin_session_capture = std::uint32_t (*)(const capture_options& options);

/// Begins a session if it is enabled; returns the number of its capture, or 0.
[[nodiscard]] MEMPROF_SEPARABLE std::uint32_t begin_recorded_session(session_options wanted, begin_session_capture begin);

[[nodiscard]] MEMPROF_SEPARABLE bool is_session_active(std::uint32_t number) noexcept;

/// Ends the session with that capture.
MEMPROF_SEPARABLE void end_recorded_session(std::uint32_t number) noexcept;

}  // namespace memprof::inline MEMPROF_ABI::detail

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/record/session_life.hpp>
#endif
