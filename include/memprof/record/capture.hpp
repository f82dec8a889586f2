#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>
#include <memprof/record/snapshot.hpp>
#include <memprof/trace/run_mode.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/record/capture_calls.hpp>
#include <memprof/record/segment_end.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <tuple>
#include <utility>
#endif

namespace memprof::inline MEMPROF_ABI {

#if MEMPROF_ENABLED
namespace detail {

/// Attaches backends in order. If one throws, those already attached are detached again.
template <class... Backends>
class attached_backends {
 public:
  explicit attached_backends(const capture_options& options) {
    std::apply([&](auto&... source) { (this->attach(source, options), ...); }, sources_);
  }
  attached_backends(const attached_backends&) = delete;
  attached_backends& operator=(const attached_backends&) = delete;

  /// For the capture that keeps them.
  [[nodiscard]] static const backend_calls& calls() noexcept {
    static constexpr backend_calls calls{detach, report_facts, destroy};
    return calls;
  }

 private:
  struct undo {
    void* source;
    void (*detach)(void*, event_sink&);
  };

  template <class Source>
  void attach(Source& source, const capture_options& options) {
#if defined(__cpp_exceptions)
    try {
      source.attach(writer_, options);
    } catch (...) {
      while (attached_ > 0) {
        const undo& last = undo_[--attached_];
        last.detach(last.source, writer_);
      }
      throw;
    }
#else
    source.attach(writer_, options);
#endif
    undo_[attached_++] = {&source, [](void* attached, event_sink& writer) { static_cast<Source*>(attached)->detach(writer); }};
  }

  static void detach(void* self) noexcept {
    auto& own = *static_cast<attached_backends*>(self);
    std::apply([&](auto&... source) { (source.detach(own.writer_), ...); }, own.sources_);
  }

  static void report_facts(void* self) {
    auto& own = *static_cast<attached_backends*>(self);
    std::apply([&](auto&... source) { (source.report_facts(own.writer_), ...); }, own.sources_);
  }

  static void destroy(void* self) noexcept { delete static_cast<attached_backends*>(self); }

  event_sink writer_;
  std::tuple<Backends...> sources_;
  undo undo_[sizeof...(Backends) + 1];
  std::size_t attached_ = 0;
};

/// Whether the backend declares that it simulates.
template <class Backend>
[[nodiscard]] constexpr bool simulates() noexcept {
  if constexpr (requires { Backend::mode; }) {
    return Backend::mode == run_mode::no_dispatch;
  } else {
    return false;
  }
}

}  // namespace detail

inline namespace enabled {

/// Ends the active capture; its last segment gets `name`. The profile stays readable until the next `begin_capture` or
/// `discard_capture`. Warns on stderr if no capture is active.
inline void end_capture(std::string_view name = detail::end_segment_name) {
  const std::uint32_t active = detail::active_capture();
  if (detail::finish_capture(active, name) || active != 0) return;
  std::fputs("memprof: end_capture: no capture is active; nothing was ended\n", stderr);
}

/// Discards the last capture and its profile; ends it first if it is active.
inline void discard_capture() { detail::discard_session(); }

/// Returns the profile of the active capture so far, or of the last one; an empty profile if there is none.
///
/// Cost: a pass over live blocks, operations and segments, during which threads with full rings wait. The hooks record neither
/// the profile's memory nor its release.
[[nodiscard]] inline profile current_profile() {
  profile result;
  if (!detail::read_session(0, result)) result.exact = false;
  return result;
}

/// Owns a capture and ends it at the end of the scope. The profile stays readable afterwards.
class [[nodiscard]] capture_guard {
 public:
  explicit capture_guard(std::uint32_t number) noexcept : number_(number) {}
  capture_guard(capture_guard&& other) noexcept : number_(std::exchange(other.number_, 0)) {}
  capture_guard& operator=(capture_guard&&) = delete;
  ~capture_guard() { detail::finish_capture(number_, detail::end_segment_name); }

  /// Like the free function, but for this guard's capture.
  void snapshot(std::string_view name) noexcept {
    if (number_ == 0 || !detail::record_segment_end(number_, name)) detail::warn_of_late_snapshot(name);
  }

  /// Ends the capture; its last segment gets `name`. Does nothing if the capture has already ended.
  void end(std::string_view name = detail::end_segment_name) { detail::finish_capture(number_, name); }

  /// Returns the profile so far; callable from any thread. Throws `memprof::error` if another capture has begun since, or after
  /// `discard_capture`.
  [[nodiscard]] memprof::profile profile() const {
    memprof::profile result;
    if (number_ == 0 || !detail::read_session(number_, result)) {
      detail::raise(
          "capture_guard::profile: this guard's capture is gone (released, discarded, or followed by another); read the "
          "profile before that, or use current_profile()");
    }
    return result;
  }

  /// Gives up ownership without ending the capture; `end_capture` or the end of the process will.
  void release() noexcept { number_ = 0; }

 private:
  std::uint32_t number_;
};

/// Starts recording what all threads allocate through memprof's resources and hooks, and what the given backends report.
///
/// Throws `memprof::error` if a capture is active or an option is out of range. Hold on to the guard: if it is discarded, the
/// capture ends at once.
template <extend::backend... Backends>
[[nodiscard("hold the guard: the capture ends when it is destroyed")]] capture_guard begin_capture(
    const capture_options& options = {}) {
  const bool is_simulated = (detail::simulates<Backends>() || ...);
  const std::uint32_t number = detail::start_capture(options, is_simulated ? run_mode::no_dispatch : options.mode);
  capture_guard guard{number};
  if constexpr (sizeof...(Backends) != 0) {
    using attached = detail::attached_backends<Backends...>;
    const detail::recording_suppressor hidden;
    // If a backend throws, the guard ends the capture.
    detail::capture_backends backends{new attached{options}, &attached::calls()};
    const detail::capture_backends ended_meanwhile = detail::keep_backends(number, std::move(backends));
  }
  return guard;
}

}  // namespace enabled

#else
inline namespace disabled {

inline void end_capture(std::string_view = detail::end_segment_name) noexcept {}
inline void discard_capture() noexcept {}
[[nodiscard]] inline profile current_profile() { return {}; }

class [[nodiscard]] capture_guard {
 public:
  // Non-trivial, so that an unused guard draws no warning; empty, so that no instruction is left.
  ~capture_guard() {}
  void snapshot(std::string_view) noexcept {}
  void end(std::string_view = detail::end_segment_name) noexcept {}
  [[nodiscard]] memprof::profile profile() const { return {}; }
  void release() noexcept {}
};

template <extend::backend... Backends>
[[nodiscard("hold the guard: the capture ends when it is destroyed")]] inline capture_guard begin_capture(
    const capture_options& = {}) noexcept {
  return {};
}

}  // namespace disabled
#endif

}  // namespace memprof::inline MEMPROF_ABI
