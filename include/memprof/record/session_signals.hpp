#pragma once

#include <memprof/detail/errno_guard.hpp>
#include <memprof/detail/process.hpp>
#include <memprof/detail/wait_word.hpp>
#include <memprof/record/clock.hpp>
#include <memprof/record/recorder.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>

#include <pthread.h>
#include <unistd.h>

/// @file
/// How a session learns that its process is ending.
///
/// A signal handler may do next to nothing, and the thread it interrupts may hold malloc's lock or one of ours. So the handler of
/// a signal that is to end the process only notes the signal and returns. The session's thread writes the profile, which takes
/// milliseconds in which the program goes on, and then lets the signal take effect with the disposition that was there before:
/// the process ends, or the program's own handler runs. A second such signal, half a second later or more, takes effect at once.
/// A thread that called `abort` or `terminate` cannot go on: it waits, for a limited time.

namespace memprof::inline MEMPROF_ABI::detail {

/// The signals that a session handles. All but SIGUSR1 are to end the process.
inline constexpr std::array<int, 5> session_signals{SIGINT, SIGTERM, SIGHUP, SIGABRT, SIGUSR1};

/// How handlers and the session's thread communicate. Handlers touch only atomics, and data published through them.
struct session_mailbox {
  std::atomic<std::int64_t> process{0};  ///< the process whose session is active; 0: none. A child of that process has none
  ::pthread_t thread{};
  wait_word wake;                                ///< incremented when the thread has something to do
  wait_word written;                             ///< incremented when it has done what another thread waits for
  std::atomic<bool> wants_extra_profile{false};  ///< an extra profile of this moment, for SIGUSR1
  std::atomic<bool> wants_profile{false};        ///< the session's own profile, up to now
  std::atomic<bool> wants_last_words{false};     ///< likewise, for `abort` and `terminate`
  std::atomic<bool> has_last_words{false};
  std::atomic<bool> wants_profile_at_fork{false};        ///< the session's own profile, before the process forks
  std::atomic<std::int64_t> next_at_fork_ns{INT64_MAX};  ///< when a `fork` may next wait for that
  std::atomic<bool> wants_end{false};
  std::atomic<bool> has_ended{false};  ///< the thread has ended and answers nothing more

  /// When the first signal that is to end the process came; 0: none did. Its handler sets this first, so that every other
  /// signal from then on can tell how long ago that was.
  std::atomic<std::int64_t> ending_since{0};
  std::atomic<int> ending{0};  ///< that signal, once it is noted; 0: none
  siginfo_t ending_info{};
  std::atomic<int> passing{0};  ///< the signal being sent again for the program's own handler

  std::array<struct sigaction, session_signals.size()> before{};
  std::array<std::atomic<bool>, session_signals.size()> is_installed{};
  std::atomic<std::terminate_handler> terminate_before{nullptr};
};

inline constinit session_mailbox mailbox{};

[[nodiscard]] inline std::size_t index_of_signal(int number) noexcept {
  std::size_t index = 0;
  while (index + 1 < session_signals.size() && session_signals[index] != number) ++index;
  return index;
}

[[nodiscard]] inline bool is_function(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

inline void on_session_signal(int number, siginfo_t* info, void* context);

[[nodiscard]] inline bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_session_signal;
}
[[nodiscard]] inline bool is_ours_now(int number) noexcept {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && is_ours(now);
}

inline void set_default_action(int number) noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(number, &action, nullptr);
}

/// Does what the signal would have done without us. Called in a handler: async-signal-safe.
inline void pass_on(int number, siginfo_t* info, void* context) noexcept {
  struct sigaction& before = mailbox.before[index_of_signal(number)];
  if (!is_function(before)) {
    if (before.sa_handler == SIG_IGN) return;
    set_default_action(number);
    ::raise(number);  // blocked until the handler returns
    return;
  }
  const struct sigaction called = before;
  constexpr unsigned only_once = SA_RESETHAND;
  if ((static_cast<unsigned>(called.sa_flags) & only_once) != 0) before = {};
  if ((called.sa_flags & SA_SIGINFO) != 0) return called.sa_sigaction(number, info, context);
  called.sa_handler(number);
}

/// Waits until the session's thread has done something or has ended, or until `until_ns`: it may need a lock that this thread
/// holds.
template <class IsDone>
void wait_for_session_thread(IsDone is_done, std::int64_t until_ns) noexcept {
  session_mailbox& box = mailbox;
  while (!is_done() && !box.has_ended.load()) {
    const std::uint32_t seen = box.written.value();
    const std::int64_t left = until_ns - monotonic_ns();
    if (left <= 0) return;
    if (!is_done() && !box.has_ended.load()) box.written.wait(seen, left);
  }
}

/// Has the session's thread write a profile and waits for it, for a limited time.
inline void wait_for_last_words() noexcept {
  constexpr std::int64_t longest_ns = 10'000'000'000;
  session_mailbox& box = mailbox;
  // Only once: when `terminate` calls `abort`, a second write could be cut off by the end of the process.
  if (box.has_last_words.load() || box.has_ended.load()) return;
  if (::pthread_equal(::pthread_self(), box.thread) != 0 || !is_outside(abi_1::this_thread)) return;
  const std::int64_t until = monotonic_ns() + longest_ns;
  box.wants_last_words.store(true);
  box.wake.advance();
  wait_for_session_thread([] { return mailbox.has_last_words.load(); }, until);
}

/// Runs before each `fork`: leaves a profile of what was recorded so far, since the process may end right after it without
/// another word, as in `daemon`, whose parent calls `_exit`. Waits for a limited time, and not again before a thousand times as
/// long has passed: some programs fork again and again.
inline void leave_profile_before_fork() noexcept {
  constexpr std::int64_t longest_ns = 1'000'000'000;
  const errno_guard keep_errno;
  session_mailbox& box = mailbox;
  if (box.process.load() != process_id() || !is_outside(abi_1::this_thread)) return;
  const std::int64_t now_ns = monotonic_ns();
  std::int64_t due_ns = box.next_at_fork_ns.load();
  if (now_ns < due_ns || !box.next_at_fork_ns.compare_exchange_strong(due_ns, INT64_MAX)) return;
  box.wants_profile_at_fork.store(true);
  box.wake.advance();
  wait_for_session_thread([] { return !mailbox.wants_profile_at_fork.load(); }, now_ns + longest_ns);
}

/// Notes a signal that is to end the process. False if it should do so at once.
[[nodiscard]] inline bool note_ending(int number, const siginfo_t* info) noexcept {
  constexpr std::int64_t impatience_ns = 500'000'000;  // launchers send a signal twice within milliseconds
  session_mailbox& box = mailbox;
  const std::int64_t now_ns = monotonic_ns();
  std::int64_t since_ns = 0;
  if (!box.ending_since.compare_exchange_strong(since_ns, now_ns)) return now_ns - since_ns < impatience_ns;
  if (info != nullptr) box.ending_info = *info;
  box.ending.store(number);
  box.wake.advance();
  // If the thread ended in between, nothing else will handle the signal, nor any other.
  return !box.has_ended.load() || box.ending.exchange(0) != number;
}

inline void on_session_signal(int number, siginfo_t* info, void* context) {
  const errno_guard keep_errno;
  session_mailbox& box = mailbox;
  if (box.process.load() != process_id()) return pass_on(number, info, context);
  if (number == SIGABRT) {
    wait_for_last_words();
    struct sigaction& before = box.before[index_of_signal(number)];
    if (is_function(before)) return pass_on(number, info, context);
    set_default_action(number);
    ::raise(number);
    return;
  }
  if (number == SIGUSR1) {
    box.wants_extra_profile.store(true);
    box.wake.advance();
    if (is_function(box.before[index_of_signal(number)])) pass_on(number, info, context);
    return;
  }
  int sent_again = number;
  if (box.passing.compare_exchange_strong(sent_again, 0)) {
    siginfo_t first = box.ending_info;
    box.ending.store(0);
    box.ending_since.store(0);
    return pass_on(number, &first, context);
  }
  if (!is_ours_now(number)) {
    // A handler that the program installed later calls us: the fate of the process is its decision.
    box.wants_profile.store(true);
    box.wake.advance();
    if (is_function(box.before[index_of_signal(number)])) pass_on(number, info, context);
    return;
  }
  if (!note_ending(number, info)) pass_on(number, info, context);
}

/// Lets the noted signal take effect. Called by the session's thread, in which all signals are blocked.
inline void pass_on_ending(int number) noexcept {
  session_mailbox& box = mailbox;
  struct sigaction& before = box.before[index_of_signal(number)];
  if (is_function(before)) {
    box.passing.store(number);
    ::kill(::getpid(), number);
    return;
  }
  set_default_action(number);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, number);
  ::kill(::getpid(), number);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);  // in case all other threads block it
}

/// Handles the signals that the program does not ignore. An earlier handler runs afterwards, with its own mask, and still
/// interrupts system calls if it did before.
inline void install_signal_handlers() noexcept {
  session_mailbox& box = mailbox;
  for (std::size_t index = 0; index < session_signals.size(); ++index) {
    const int number = session_signals[index];
    struct sigaction before {};
    if (::sigaction(number, nullptr, &before) != 0) continue;
    const bool is_default_or_function = is_function(before) || before.sa_handler == SIG_DFL;
    if (is_ours(before) || !is_default_or_function) continue;
    box.before[index] = before;
    struct sigaction action {};
    action.sa_sigaction = on_session_signal;
    if (is_function(before)) action.sa_mask = before.sa_mask;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | (is_function(before) ? before.sa_flags & SA_RESTART : SA_RESTART);
    box.is_installed[index].store(::sigaction(number, &action, nullptr) == 0);
  }
}

/// Restores the previous handlers, unless the program has installed others since: those may call ours, which then passes the
/// signal on.
inline void remove_signal_handlers() noexcept {
  session_mailbox& box = mailbox;
  for (std::size_t index = 0; index < session_signals.size(); ++index) {
    if (box.is_installed[index].load() && is_ours_now(session_signals[index])) {
      ::sigaction(session_signals[index], &box.before[index], nullptr);
    }
    box.is_installed[index].store(false);
  }
}

[[noreturn]] inline void on_terminate() {
  session_mailbox& box = mailbox;
  if (box.process.load() == process_id()) wait_for_last_words();
  if (const std::terminate_handler before = box.terminate_before.load(); before != nullptr) before();
  std::abort();
}

inline void install_terminate_handler() noexcept {
  if (std::get_terminate() == on_terminate) return;
  mailbox.terminate_before.store(std::set_terminate(on_terminate));
}
inline void remove_terminate_handler() noexcept {
  if (std::get_terminate() == on_terminate) std::set_terminate(mailbox.terminate_before.load());
}

}  // namespace memprof::inline MEMPROF_ABI::detail
