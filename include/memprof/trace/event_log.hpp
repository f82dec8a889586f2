#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/trace/event.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace memprof {

/// The events of a capture in the order in which its ledger saw them, for whoever wants to replay them: another ledger, a model
/// of an allocator. `capture_options::log` has a capture fill one; read it when the capture has ended.
///
/// Takes 32 bytes for each event and 16 for each change of thread, in pages that the hooks do not see; they are not part of the
/// memory that a profile says the profiler took. Not synchronised.
class event_log {
 public:
  explicit event_log(std::size_t max_events = std::numeric_limits<std::size_t>::max()) noexcept : max_events_(max_events) {}

  /// Adds events [first, last) of one thread. Once they are too many, or the system has no memory, they and all later ones are
  /// only counted, so that what is kept is a beginning without gaps.
  void append(const event* first, const event* last, std::uint32_t thread) noexcept {
    const auto count = static_cast<std::size_t>(last - first);
    if (left_out_ != 0 || count > max_events_ - events_.size() || !keep(first, count, thread)) left_out_ += count;
  }

  /// Calls `fold.apply(first, last, thread)` for every run of events of one thread, in order.
  template <class Fold>
  void replay(Fold& fold) const {
    for (std::size_t index = 0; index < runs_.size(); ++index) {
      const std::size_t end = index + 1 == runs_.size() ? events_.size() : runs_[index + 1].first;
      fold.apply(events_.data() + runs_[index].first, events_.data() + end, runs_[index].thread);
    }
  }

  /// Events that are kept.
  [[nodiscard]] std::size_t size() const noexcept { return events_.size(); }
  /// Events that came after those that are kept.
  [[nodiscard]] std::size_t left_out() const noexcept { return left_out_; }
  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept { return events_.bytes() + runs_.bytes(); }

 private:
  struct run {
    std::size_t first;
    std::uint32_t thread;
  };

  [[nodiscard]] bool keep(const event* first, std::size_t count, std::uint32_t thread) noexcept {
    const std::size_t begin = events_.size();
    if (!events_.reserve(begin + count)) return false;
    if ((runs_.empty() || runs_.back().thread != thread) && !runs_.push_back({begin, thread})) return false;
    for (std::size_t index = 0; index < count; ++index) (void)events_.push_back(first[index]);
    return true;
  }

  std::size_t max_events_;
  std::size_t left_out_ = 0;
  detail::page_array<event> events_;
  detail::page_array<run> runs_;
};

}  // namespace memprof
