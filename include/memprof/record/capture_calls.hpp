#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record/capture_backends.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/run_mode.hpp>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <string_view>

/// @file
/// The part of the control path that the public interface calls; implemented in record/capture_control.hpp.

namespace memprof::inline MEMPROF_ABI::detail {

/// Begins a capture and returns its number. `mode` is the profile's mode: a backend may simulate even if the program's own
/// resources do not. Throws `memprof::error` if a capture is active or an option is out of range.
[[nodiscard]] MEMPROF_SEPARABLE std::uint32_t start_capture(const capture_options& options, run_mode mode);

/// Hands the backends over to capture `number`; returns them if another thread has already ended it.
[[nodiscard]] MEMPROF_SEPARABLE capture_backends keep_backends(std::uint32_t number, capture_backends backends) noexcept;

/// Ends capture `number`; its last segment gets `name`. False if it is not the active one.
MEMPROF_SEPARABLE bool finish_capture(std::uint32_t number, std::string_view name) noexcept;

/// Ends the active capture, if any, and discards the last one.
MEMPROF_SEPARABLE void discard_session() noexcept;

/// The profile of capture `number`, or of the current one if `number` is 0. False if that capture is gone. A template in the
/// header-only build, so that translation units that never read a profile do not compile the code that builds one.
#if MEMPROF_SEPARATE_COMPILATION
[[nodiscard]] bool read_session(std::uint32_t number, profile& result);
#else
template <std::same_as<profile> Profile>
[[nodiscard]] bool read_session(std::uint32_t number, Profile& result);
#endif

}  // namespace memprof::inline MEMPROF_ABI::detail

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/record/capture_control.hpp>
#endif
