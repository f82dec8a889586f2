#pragma once

#include <memprof/detail/cancellation_guard.hpp>
#include <memprof/detail/futex_lock.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/detail/wait_word.hpp>
#include <memprof/record/capture_control.hpp>
#include <memprof/record/session_calls.hpp>
#include <memprof/record/session_files.hpp>
#include <memprof/record/session_options.hpp>
#include <memprof/record/session_settings.hpp>
#include <memprof/record/session_signals.hpp>
#include <memprof/record/session_thread.hpp>
#include <memprof/record/this_process.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <unistd.h>

extern "C" char** environ;  // NOLINT(readability-redundant-declaration): only some libraries declare it

/// @file
/// How a session begins and ends.

namespace memprof::inline MEMPROF_ABI::detail {

/// The recording session; null: none. Not destroyed if the process ends without ending it.
inline constinit std::atomic<running_session*> current_session{nullptr};
/// Held by the thread that begins or ends a session.
inline constinit futex_lock session_lock{};
inline constinit std::atomic<std::uint64_t> session_lock_owner{0};  ///< number of the thread that holds it

class [[nodiscard]] session_guard {
 public:
  session_guard() noexcept { session_lock_owner.store(thread_id()); }
  session_guard(const session_guard&) = delete;
  session_guard& operator=(const session_guard&) = delete;
  ~session_guard() { session_lock_owner.store(0); }

 private:
  lock_guard<futex_lock> held_{session_lock};
};

/// Whether the session in `current_session` belongs to this process, not to the parent that forked it.
[[nodiscard]] inline bool is_of_this_process() noexcept { return mailbox.process.load() == process_id(); }

MEMPROF_SEPARABLE bool is_session_active(std::uint32_t number) noexcept {
  return is_of_this_process() && active_capture() == number;
}

/// Ends the capture, has the thread write the profile, and restores the previous handlers. Under `session_lock`.
inline void finish_session() noexcept {
  const cancellation_guard whole;  // it waits for a thread, or writes files
  running_session* const ending = current_session.load();
  if (ending == nullptr || !is_of_this_process()) return;
  finish_capture(ending->capture, end_segment_name);
  if (ending->has_thread) {
    mailbox.wants_end.store(true);
    mailbox.wake.advance();
    ::pthread_join(mailbox.thread, nullptr);
  } else {
    const recording_suppressor hidden;
    ending->write_profile(profile_for::session);
  }
  ending->remove_unwanted_trace();
  remove_signal_handlers();
  remove_terminate_handler();
  mailbox.process.store(0);
  current_session.store(nullptr);
  const recording_suppressor hidden;
  delete ending;
}

/// Whether this thread may take `session_lock`: it neither holds it, as in a backend that calls `exit`, nor is inside memprof.
[[nodiscard]] inline bool may_wait_for_session() noexcept {
  const std::uint64_t owner = session_lock_owner.load();
  return may_take_lock(abi_1::process_registry, abi_1::this_thread) && (owner == 0 || owner != thread_id());
}

/// Increments when the process's exit has finished the session, or has left it.
inline constinit wait_word exit_progress{};

/// Runs at `exit` and `quick_exit`, on any thread. A thread inside memprof, in a signal handler that calls `exit`, must not wait
/// for locks that it may hold: then only the trace remains.
inline void finish_session_at_exit() noexcept {
  if (is_of_this_process() && may_wait_for_session()) {
    const session_guard serial;
    finish_session();
  }
  exit_progress.advance();
}

/// Runs after `finish_session_at_exit` has begun, on a thread that ends the process while another one already does. Libc gives
/// each of them the next handler, so this one would end the process while the profile is being written. Each leaves one for the
/// next.
inline void wait_for_session_at_exit(int (*at_exit)(void (*)()), void (*again)()) noexcept {
  constexpr std::int64_t look_ns = 1'000'000'000;
  if (!is_of_this_process() || exit_progress.value() != 0 || !may_wait_for_session()) return;
  at_exit(again);
  while (is_of_this_process() && exit_progress.value() == 0) exit_progress.wait(0, look_ns);
}
inline void wait_at_exit() noexcept { wait_for_session_at_exit(std::atexit, wait_at_exit); }
#if !defined(__APPLE__)
inline void wait_at_quick_exit() noexcept { wait_for_session_at_exit(std::at_quick_exit, wait_at_quick_exit); }
#endif

/// Handlers run in the reverse order.
inline void watch_exit() noexcept {
  static constinit std::atomic<bool> is_watched{false};
  if (is_watched.exchange(true)) return;
  std::atexit(wait_at_exit);
  std::atexit(finish_session_at_exit);
#if !defined(__APPLE__)
  std::at_quick_exit(wait_at_quick_exit);
  std::at_quick_exit(finish_session_at_exit);
#endif
}

/// Run in a child after `fork`: the session belongs to its parent, and the child may begin one of its own.
inline void forget_session_of_parent() noexcept {
  session_lock.reset();
  session_lock_owner.store(0);
  exit_progress.reset();
  current_session.store(nullptr);
  mailbox.process.store(0);
}

/// After the capture has begun, so that this runs before the capture's own handler takes the registry's lock.
inline void watch_forks_of_sessions() noexcept {
  static constinit std::atomic<bool> is_watched{false};
  if (!is_watched.exchange(true)) ::pthread_atfork(leave_profile_before_fork, nullptr, forget_session_of_parent);
}

inline void empty_mailbox() noexcept {
  session_mailbox& box = mailbox;
  box.wake.reset();
  box.written.reset();
  for (std::atomic<bool>* const flag : {&box.wants_extra_profile, &box.wants_profile, &box.wants_last_words, &box.has_last_words,
                                        &box.wants_profile_at_fork, &box.wants_end, &box.has_ended}) {
    flag->store(false);
  }
  box.next_at_fork_ns.store(INT64_MAX);
  box.ending.store(0);
  box.ending_since.store(0);
  box.passing.store(0);
}

/// Decides directory and name of the session's files. Prints a line if they cannot be written.
inline void prepare_files(running_session& session) {
  session_options& options = session.options;
  std::error_code ignored;
  // Unaffected by later changes of the program's working directory.
  const std::filesystem::path absolute = std::filesystem::absolute(options.output_dir, ignored);
  if (!absolute.empty()) options.output_dir = absolute.lexically_normal().string();
  const std::string problem = prepare_directory(options.output_dir);
  if (!problem.empty()) {
    say_of_session("session: cannot write into the directory '" + options.output_dir + "': " + problem +
                   "; the training goes on, and the profile will be tried there at the end");
  }
  session.stem = session_stem(options.output_dir, unix_ns(), session.process);
  const bool needs_trace = options.trace || options.format == session_format::session;
  if (!needs_trace || !problem.empty()) return;
  const int error = reserve_name(session.stem, ".memtrace");
  if (error != 0) return say_of_session("session: no trace file '" + session.stem + ".memtrace': " + reason_of(error));
  session.trace_file = session.stem + ".memtrace";
  options.capture.trace_file = literal_trace_path(session.trace_file);
}

MEMPROF_SEPARABLE std::uint32_t begin_recorded_session(session_options wanted, begin_session_capture begin) {
  const recording_suppressor hidden;
  session_options options = settled(std::move(wanted), environ);
  if (!options.enabled) return 0;
  const session_guard serial;
  if (active_capture() != 0 || (current_session.load() != nullptr && is_of_this_process())) {
    say_of_session("session: a capture is active already, so the session records nothing; end that one first, or leave one out");
    return 0;
  }
  auto* const made = new running_session;
  made->options = std::move(options);
  made->process = describe_process();
  made->interval_ns = static_cast<std::int64_t>(made->options.interval * 1e9);
  if (made->interval_ns < 1'000'000) made->interval_ns = 1'000'000;
  prepare_files(*made);
#if defined(__cpp_exceptions)
  try {
    made->capture = begin(made->options.capture);
  } catch (...) {
    delete made;
    throw;
  }
#else
  made->capture = begin(made->options.capture);
#endif
  empty_mailbox();
  mailbox.process.store(process_id());
  current_session.store(made);
  watch_exit();
  watch_forks_of_sessions();
  if (made->start_thread()) {
    mailbox.next_at_fork_ns.store(0);
    install_terminate_handler();
    if (made->options.signals) install_signal_handlers();
  } else {
    say_of_session(
        "session: the system cannot start a thread for it, so there are no periodic checkpoints, and signals leave no profile");
  }
  return made->capture;
}

MEMPROF_SEPARABLE void end_recorded_session(std::uint32_t number) noexcept {
  if (!is_of_this_process()) return;
  const session_guard serial;
  if (running_session* const session = current_session.load(); session != nullptr && session->capture == number) finish_session();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
