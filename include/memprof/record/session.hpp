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
/// Recording that looks after itself: docs/session.md. Needs what <memprof/profile/json.hpp> needs (CMake: `memprof::json`),
/// though not nlohmann/json.

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
inline namespace enabled {

/// Records from here to its end, and leaves a profile however the process ends: `memory_profile_YYYYMMDD_HHMMSS[_rankR].json`,
/// with the time at which the session began.
///
/// Off unless `session_options::enabled` or the environment asks for it (`MEMPROF=1`); then it costs nothing, and neither does
/// what else is called of memprof. It begins a capture, with its backends if it has any, and a thread that takes a checkpoint of
/// what is live at each interval and sleeps in between. At its end, at `exit` and `quick_exit` the profile is that of the ended
/// capture; at an uncaught exception, `abort` and signals it is that of what was recorded until then. Nothing that goes wrong
/// with files ends the program: a line on stderr says what it was.
///
/// One at a time; the program's own `begin_capture` is refused meanwhile. While another capture is active the session does
/// nothing but say so. Throws what `begin_capture` throws for `session_options::capture`.
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

  /// A session with backends, as `begin_capture` has them.
  template <backend... Backends>
  [[nodiscard]] static session with(session_options options = {}) {
    return session{std::move(options), begin<Backends...>};
  }

  /// Ends the capture and writes the profile. Does nothing if there is nothing to end.
  void end() noexcept {
    if (number_ != 0) detail::end_recorded_session(std::exchange(number_, 0));
  }

  /// Whether it records.
  [[nodiscard]] bool is_active() const noexcept { return number_ != 0 && detail::is_session_active(number_); }

 private:
  template <backend... Backends>
  static std::uint32_t begin(const capture_options& options) {
    begin_capture<Backends...>(options).release();
    return detail::active_capture();
  }
  session(session_options options, detail::begin_session_capture to_begin)
      : number_(detail::begin_recorded_session(std::move(options), to_begin)) {}

  std::uint32_t number_;  ///< of its capture; 0: none
};

}  // namespace enabled

#else
inline namespace disabled {

class [[nodiscard]] session {
 public:
  explicit session(const session_options& = {}) noexcept {}
  session(const session&) = delete;
  session& operator=(const session&) = delete;
  // Not trivial, so that an unused one draws no warning; empty, so that no instruction is left.
  ~session() {}
  template <backend... Backends>
  [[nodiscard]] static session with(const session_options& = {}) noexcept {
    return session{};
  }
  void end() noexcept {}
  [[nodiscard]] bool is_active() const noexcept { return false; }
};

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
