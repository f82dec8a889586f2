#pragma once

#include <memprof/detail/process.hpp>
#include <memprof/detail/succeeds.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/session_text.hpp>
#include <memprof/profile/write_json.hpp>
#include <memprof/record/capture_control.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/process_reading.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/session_files.hpp>
#include <memprof/record/session_options.hpp>
#include <memprof/record/session_settings.hpp>
#include <memprof/record/session_signals.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/file_layout.hpp>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <string>
#include <utility>

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

/// @file
/// A session's thread: it sleeps until the interval is over or a profile is requested.

namespace memprof::inline MEMPROF_ABI::detail {

/// Adds a periodic checkpoint to capture `number`. False if that capture has ended.
inline bool add_periodic_checkpoint(std::uint32_t number) noexcept {
  const control_guard control;
  registry& shared = abi_1::process_registry;
  if (number == 0 || active_capture() != number || shared.drain == nullptr) return false;
  shared.drain(shared);
  shared.put_event(shared, {shared.stamps.next(), 0, 0, 0, event_kind::checkpoint, any_space, 0});
  return true;
}

/// Detects changes of the wall clock. Times in a profile follow the monotonic clock from the start of the capture, so after a
/// change they differ from the wall clock's.
class wall_clock_watch {
 public:
  /// Reports a change the first time it is seen.
  void look() noexcept {
    const std::int64_t now_ns = monotonic_ns();
    const std::int64_t ahead_ns = unix_ns() - now_ns;
    const std::int64_t jump_ns = ahead_ns - ahead_ns_;
    // NTP slews a clock by at most 1 in 2000.
    const std::int64_t slewed_ns = ns_per_second + (now_ns > seen_ns_ ? (now_ns - seen_ns_) / 1000 : 0);
    seen_ns_ = now_ns;
    ahead_ns_ = ahead_ns;
    if (has_said_ || (jump_ns <= slewed_ns && jump_ns >= -slewed_ns)) return;
    has_said_ = true;
    (void)succeeds([&] {
      say_of_session("session: the wall clock went " + std::string{jump_ns > 0 ? "forward" : "back"} + " by " +
                     std::to_string(((jump_ns > 0 ? jump_ns : -jump_ns) + ns_per_second / 2) / ns_per_second) +
                     " s (it was set, or the machine slept); times in the profile still count from the session's start");
    });
  }

 private:
  static constexpr std::int64_t ns_per_second = 1'000'000'000;

  std::int64_t seen_ns_ = monotonic_ns();
  std::int64_t ahead_ns_ = unix_ns() - seen_ns_;
  bool has_said_ = false;
};

/// What a profile is written for.
enum class profile_for {
  session,  ///< the session itself: what was recorded until now
  moment,   ///< this moment, beside the session's own
  fork,     ///< as `session`, because the process forks and may end at once
};

/// A recording session: state shared by its thread and the thread that ends it. Only the session's thread writes files.
struct running_session {
  session_options options;
  process_info process;
  std::uint32_t capture = 0;
  std::string stem;        ///< name of its files, without the extension
  std::string json_file;   ///< empty until it is written
  std::string trace_file;  ///< empty: none
  std::int64_t interval_ns = 0;
  bool has_thread = false;
  bool has_said_fork = false;

  // --- profiles -----------------------------------------------------------------------------------------------------

  /// Writes the profile up to now, as the session's own or as an extra one. All memory that this needs is hidden from the hooks.
  void write_profile(profile_for purpose) noexcept {
    const bool is_own = purpose != profile_for::moment;
    const bool has_memory = succeeds([&] {
      profile now;
      if (!read_session(capture, now)) return say_of_session("session: its capture is gone, so there is no profile to write");
      const internal_guard hidden;
      const std::string text = text_of(now);
      std::string name = is_own ? stem : session_stem(options.output_dir, unix_ns(), process);
      const bool was_written = is_own && !json_file.empty();
      const std::string problem = write_session_file(name, ".json", was_written, text);
      if (!problem.empty()) return say_of_session("cannot write the profile '" + name + ".json': " + problem + rest_of_trace());
      if (purpose != profile_for::fork) {
        say_of_session("profile in '" + name + ".json'");
      } else if (!std::exchange(has_said_fork, true)) {
        say_of_session("session: the process forks: the profile so far is in '" + name +
                       ".json', and the child records nothing; if the child goes on in place of its parent, as after daemon(), "
                       "begin the session there");
      }
      if (!is_own) return;
      stem = name;
      json_file = name + ".json";
    });
    if (!has_memory) say_of_session("session: the system has no memory for the profile");
  }

  /// What the file has.
  [[nodiscard]] std::string text_of(const profile& now) const {
    if (options.format == session_format::profile) return to_json_text(now) + '\n';
    return write_session_text(now, has_trace() ? trace_file : std::string{});
  }

  /// What to do about a profile that cannot be written.
  [[nodiscard]] std::string rest_of_trace() const {
    if (!has_trace()) return {};
    const char* const command = options.format == session_format::profile ? "profile " : "export --format session ";
    return std::string{"; `memprof "} + command + trace_file + "` makes it from the trace";
  }

  /// Removes the trace file that was created to reserve its name, if nothing could be written into it, and one that nobody asked
  /// for, once the session's file is there.
  void remove_unwanted_trace() const noexcept {
    const bool is_spent = !options.trace && !json_file.empty();
    if (!trace_file.empty() && (is_spent || !has_trace())) ::unlink(trace_file.c_str());
  }

  /// Whether the trace file has more than its header.
  [[nodiscard]] bool has_trace() const noexcept {
    struct stat status {};
    return !trace_file.empty() && ::stat(trace_file.c_str(), &status) == 0 && status.st_size > off_t{trace_file_header::size};
  }

  // --- the thread ---------------------------------------------------------------------------------------------------

  [[nodiscard]] bool start_thread() noexcept {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    // The thread takes no signals: neither the program's, nor SIGXFSZ, which a file beyond its size limit raises.
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    has_thread = ::pthread_create(&mailbox.thread, nullptr, run, this) == 0;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return has_thread;
  }

  static void* run(void* self) {
#if defined(__linux__)
    ::prctl(PR_SET_NAME, "memprof session", 0, 0, 0);
#endif
    const recording_suppressor hidden;
    thread_without_handlers.store(thread_id(), std::memory_order_relaxed);
    static_cast<running_session*>(self)->serve();
    thread_without_handlers.store(0, std::memory_order_relaxed);
    return nullptr;
  }

  void serve() noexcept {
    session_mailbox& box = mailbox;
    std::int64_t next_ns = monotonic_ns() + interval_ns;
    wall_clock_watch wall_clock;
    for (;;) {
      const std::uint32_t seen = box.wake.value();
      if (box.wants_end.load()) break;
      answer();
      wall_clock.look();
      const std::int64_t now_ns = monotonic_ns();
      if (now_ns >= next_ns) {
        const bool goes_on = add_periodic_checkpoint(capture);
        next_ns = goes_on ? following(next_ns, monotonic_ns()) : INT64_MAX;
      } else if (next_ns != INT64_MAX && next_ns - now_ns > interval_ns) {
        next_ns = now_ns + interval_ns;  // the clock went back, as when a virtual machine moves to another host
      }
      box.wake.wait(seen, next_ns - monotonic_ns());
    }
    if (box.wants_extra_profile.exchange(false)) write_profile(profile_for::moment);
    write_profile(profile_for::session);
    box.has_ended.store(true);
    // Handlers that note a signal from now on see this; a signal noted before is taken by its handler or here.
    if (const int number = box.ending.load(); number > 0 && box.passing.load() == 0) {
      int noted = number;
      if (box.ending.compare_exchange_strong(noted, 0)) pass_on_ending(number);
    }
    box.written.advance();
  }

  /// The next periodic time after `now_ns`; times missed while the machine was suspended are skipped.
  [[nodiscard]] std::int64_t following(std::int64_t due_ns, std::int64_t now_ns) const noexcept {
    return due_ns + ((now_ns - due_ns) / interval_ns + 1) * interval_ns;
  }

  /// Does what handlers have requested.
  void answer() noexcept {
    session_mailbox& box = mailbox;
    if (box.wants_extra_profile.exchange(false)) write_profile(profile_for::moment);
    if (box.wants_profile.exchange(false)) write_profile(profile_for::session);
    if (box.wants_last_words.exchange(false)) {
      write_profile(profile_for::session);
      box.has_last_words.store(true);
      box.written.advance();
    }
    if (box.wants_profile_at_fork.load()) answer_fork();
    answer_ending();
  }

  void answer_fork() noexcept {
    session_mailbox& box = mailbox;
    const std::int64_t begin_ns = monotonic_ns();
    write_profile(profile_for::fork);
    const std::int64_t end_ns = monotonic_ns();
    box.next_at_fork_ns.store(end_ns + 1000 * (end_ns - begin_ns));
    box.wants_profile_at_fork.store(false);
    box.written.advance();
  }

  void answer_ending() noexcept {
    session_mailbox& box = mailbox;
    const int number = box.ending.load();
    if (number <= 0 || box.passing.load() != 0) return;
    write_profile(profile_for::session);
    pass_on_ending(number);
  }
};

}  // namespace memprof::inline MEMPROF_ABI::detail
