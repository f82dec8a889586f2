#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/record/event_sink.hpp>
#include <memprof/record/options.hpp>

#include <string_view>

#if MEMPROF_ENABLED
#include <memprof/record/session.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <tuple>
#include <utility>
#endif

namespace memprof {

#if MEMPROF_ENABLED
namespace detail {

/// Attaches backends one after the other; those that are attached are detached again if a later one throws.
template <class... Backends>
class attached_backends {
 public:
  explicit attached_backends(const capture_options& options) {
    std::apply([&](auto&... source) { (this->attach(source, options), ...); }, sources_);
  }
  attached_backends(const attached_backends&) = delete;
  attached_backends& operator=(const attached_backends&) = delete;

  /// As a capture keeps them.
  [[nodiscard]] static const backend_calls& calls() noexcept {
    static constexpr bool any_describes = (can_describe<Backends> || ...);
    static constexpr backend_calls calls{detach, any_describes ? describe : nullptr, destroy};
    return calls;
  }

 private:
  struct undo {
    void* source;
    void (*detach)(void*);
  };

  template <class Source>
  static constexpr bool can_describe = requires(const Source& source, profile& result) {
    source.describe(result);
  };

  template <class Source>
  void attach(Source& source, const capture_options& options) {
#if defined(__cpp_exceptions)
    try {
      attach_one(source, options);
    } catch (...) {
      while (attached_ > 0) {
        const undo& last = undo_[--attached_];
        last.detach(last.source);
      }
      throw;
    }
#else
    attach_one(source, options);
#endif
    undo_[attached_++] = {&source, [](void* attached) { static_cast<Source*>(attached)->detach(); }};
  }

  template <class Source>
  void attach_one(Source& source, const capture_options& options) {
    if constexpr (requires { source.attach(sink_, options); }) {
      source.attach(sink_, options);
    } else {
      source.attach(sink_);
    }
  }

  static void detach(void* self) noexcept {
    std::apply([](auto&... source) { (source.detach(), ...); }, static_cast<attached_backends*>(self)->sources_);
  }

  static void describe(const void* self, profile& result) {
    const auto describe_one = [&]<class Source>(const Source& source) {
      if constexpr (can_describe<Source>) source.describe(result);
    };
    std::apply([&](const auto&... source) { (describe_one(source), ...); },
               static_cast<const attached_backends*>(self)->sources_);
  }

  static void destroy(void* self) noexcept { delete static_cast<attached_backends*>(self); }

  event_sink sink_;
  std::tuple<Backends...> sources_;
  undo undo_[sizeof...(Backends) + 1];
  std::size_t attached_ = 0;
};

/// The profile that a guard hands out. It knows how to delete it only once there is one: a member of type `profile` would have
/// every unit that holds a guard compile the destructors of all its parts.
class kept_profile {
 public:
  kept_profile() noexcept = default;
  kept_profile(kept_profile&& other) noexcept
      : kept_(std::exchange(other.kept_, nullptr)), delete_kept_(std::exchange(other.delete_kept_, nullptr)) {}
  kept_profile& operator=(kept_profile&&) = delete;
  ~kept_profile() {
    if (kept_ == nullptr) return;
    const internal_guard hidden;  // another capture may have begun
    delete_kept_(kept_);
  }

  template <class Profile = profile>
  [[nodiscard]] Profile& make() {
    if (kept_ == nullptr) {
      const internal_guard hidden;
      kept_ = new Profile;
      delete_kept_ = [](profile* kept) { delete static_cast<Profile*>(kept); };
    }
    return *kept_;
  }

 private:
  profile* kept_ = nullptr;
  void (*delete_kept_)(profile*) = nullptr;
};

}  // namespace detail

inline namespace enabled {

/// Ends the current segment and begins the next. The stretch since the last snapshot, or since the capture began, gets `name`;
/// equal names are kept as segments of their own.
///
/// Does nothing without a capture, so that an instrumented program runs unprofiled; after one has ended, a line on stderr says so
/// once. Cost: emptying the rings and a pass over the operations; it never walks the live blocks. Thread-safe, as are all control
/// calls.
inline void snapshot(std::string_view name) noexcept {
  if (!detail::end_segment(0, name)) detail::warn_of_late_snapshot(name);
}

/// Ends the active capture with a last segment; its profile stays readable until the next `begin_capture` or `clear`. Warns on
/// stderr if none is active.
inline void end_capture(std::string_view name = end_segment_name) {
  if (detail::end_session(detail::active_session(), name)) return;
  std::fputs("memprof: end_capture: no capture is active; nothing was ended\n", stderr);
}

/// Forgets the last capture and its profile, ending it first if it is active.
inline void clear() { detail::clear_session(); }

/// The profile of the active capture up to now, or of the last one; an empty profile if there is none.
///
/// Costs a pass over live blocks, operations and segments, during which threads whose rings are full wait. A template only so
/// that units that read no profile do not compile what builds one; call it without arguments.
template <class State = detail::capture_state>
[[nodiscard]] profile current_profile() {
  memprof::profile result;
  (void)detail::read_session<State>(0, result);
  return result;
}

/// Owns a capture: it ends at the end of the scope, and its profile stays readable after that.
class [[nodiscard]] capture_guard {
 public:
  explicit capture_guard(std::uint32_t number) noexcept : number_(number) {}
  capture_guard(capture_guard&& other) noexcept : number_(std::exchange(other.number_, 0)) {}
  capture_guard& operator=(capture_guard&&) = delete;
  ~capture_guard() { detail::end_session(number_, end_segment_name); }

  /// As the free function, for this guard's capture.
  void snapshot(std::string_view name) noexcept {
    if (number_ == 0 || !detail::end_segment(number_, name)) detail::warn_of_late_snapshot(name);
  }

  /// Ends the capture with a last segment. Does nothing if it has ended already.
  void end(std::string_view name = end_segment_name) { detail::end_session(number_, name); }

  /// The profile up to now. The reference holds until the next call. Throws `memprof::error` if another capture has begun since,
  /// or after `clear`. A template for the reason that `current_profile` is one.
  template <class State = detail::capture_state>
  [[nodiscard]] const memprof::profile& profile() const {
    memprof::profile& kept = profile_.make();
    if (number_ == 0 || !detail::read_session<State>(number_, kept)) {
      detail::raise(
          "capture_guard::profile: this guard's capture is gone (released, cleared, or followed by another); read the "
          "profile before that, or use current_profile()");
    }
    return kept;
  }

  /// Lets go without ending: `end_capture` or the end of the process will.
  void release() noexcept { number_ = 0; }

 private:
  std::uint32_t number_;
  mutable detail::kept_profile profile_;
};

/// Begins to record what all threads allocate through memprof's resources and hooks, and what the given backends tell.
///
/// Throws `memprof::error` if a capture is active or an option is out of range. Make sure to hold the guard: without it the
/// capture ends at once.
template <backend... Backends>
[[nodiscard]] capture_guard begin_capture(const capture_options& options = {}) {
  const std::uint32_t number = detail::begin_session(options);
  capture_guard guard{number};
  if constexpr (sizeof...(Backends) != 0) {
    using attached = detail::attached_backends<Backends...>;
    const detail::nested_allocation hidden;
    // If one of them throws, the guard ends the capture.
    detail::kept_backends backends{new attached{options}, &attached::calls()};
    const detail::kept_backends ended_meanwhile = detail::keep_backends(number, std::move(backends));
  }
  return guard;
}

}  // namespace enabled

#else
inline namespace disabled {

inline void snapshot(std::string_view) noexcept {}
inline void end_capture(std::string_view = end_segment_name) noexcept {}
inline void clear() noexcept {}
[[nodiscard]] inline profile current_profile() { return {}; }

class [[nodiscard]] capture_guard {
 public:
  // Not trivial, so that an unused guard draws no warning; empty, so that no instruction is left.
  ~capture_guard() {}
  void snapshot(std::string_view) noexcept {}
  void end(std::string_view = end_segment_name) noexcept {}
  [[nodiscard]] const memprof::profile& profile() const {
    static const memprof::profile nothing;
    return nothing;
  }
  void release() noexcept {}
};

template <backend... Backends>
[[nodiscard]] inline capture_guard begin_capture(const capture_options& = {}) noexcept {
  return {};
}

}  // namespace disabled
#endif

}  // namespace memprof
