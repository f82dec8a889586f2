#pragma once

#include <memprof/config.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/session_options.hpp>

#include <string>

#if MEMPROF_ENABLED
#include <memprof/record/capture.hpp>
#include <memprof/record/session_calls.hpp>

#include <cstdint>
#include <utility>
#endif

/// @file
/// Recording without supervision: docs/session.md. Needs what <memprof/profile/json.hpp> needs (CMake: `memprof::json`), though
/// not nlohmann/json.

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Records until its end and leaves a profile however the process ends: `memory_profile_YYYYMMDD_HHMMSS[_rankR].json`, named
/// after the time at which the session began.
///
/// Off unless enabled by `session_options::enabled` or the environment (`MEMPROF=1`); while off, it costs nothing, and neither
/// does any other memprof call. It begins a capture, with its backends if any, and a thread that takes a checkpoint of what is
/// live at each interval and sleeps in between. At its end, at `exit` and at `quick_exit`, the profile is that of the ended
/// capture; at an uncaught exception, `abort` or a signal, it covers everything recorded so far. No problem with files ends the
/// program: a line on stderr reports it.
///
/// Only one at a time; meanwhile, the program's own `begin_capture` is refused. While another capture is active, the session only
/// prints a line saying so. Throws what `begin_capture` throws for `session_options::capture`.
///
/// @code
/// int main() {
///   memprof::session session;  // MEMPROF=1 ./train
///   ...
/// }
/// @endcode
class [[nodiscard]] session {
 public:
  explicit session(session_options options = {}) : session(std::move(options), begin<>) {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  ~session() { end(); }

  /// A session with backends, as with `begin_capture`.
  template <extend::backend... Backends>
  [[nodiscard]] static session with(session_options options = {}) {
    return session{std::move(options), begin<Backends...>};
  }

  /// Ends the capture and writes the profile. Does nothing if there is nothing to end.
  void end() noexcept {
    if (number_ != 0) detail::end_recorded_session(std::exchange(number_, 0));
  }

  /// Whether it is recording.
  [[nodiscard]] bool is_active() const noexcept { return number_ != 0 && detail::is_session_active(number_); }

 private:
  template <extend::backend... Backends>
  static std::uint32_t begin(const capture_options& options) {
    begin_capture<Backends...>(options).release();
    return detail::active_capture();
  }
  session(session_options options, detail::begin_session_capture to_begin)
      : number_(detail::begin_recorded_session(std::move(options), to_begin)) {}

  std::uint32_t number_;  ///< number of its capture; 0: none
};

}  // namespace enabled

#else
inline namespace disabled {

class [[nodiscard]] session {
 public:
  explicit session(const session_options& = {}) noexcept {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  // Non-trivial, so that an unused session draws no warning; empty, so that no instruction is left.
  ~session() {}
  template <extend::backend... Backends>
  [[nodiscard]] static session with(const session_options& = {}) noexcept {
    return session{};
  }
  void end() noexcept {}
  [[nodiscard]] bool is_active() const noexcept { return false; }
};

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
