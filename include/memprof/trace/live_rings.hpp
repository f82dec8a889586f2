#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/live_snapshot.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

/// @file
/// The events that the rings of a live area still hold, as the end of its trace.

namespace memprof::inline MEMPROF_ABI::detail {

/// How far a trace has come on each ring.
class ring_positions {
 public:
  void add(const event* first, const event* last, std::uint32_t ring) {
    if (known_ == nullptr || ring != known_ring_) {
      known_ = &rings_[ring];  // the entry never moves
      known_ring_ = ring;
    }
    known_->events += static_cast<std::uint64_t>(last - first);
    for (const event* each = last; each != first; --each) {
      if (each[-1].stamp == 0) continue;
      known_->last_stamp = each[-1].stamp;
      break;
    }
  }
  void set(std::uint32_t ring, std::uint64_t events) { rings_[ring].events = events; }

  [[nodiscard]] std::uint64_t events(std::uint32_t ring) const {
    const auto found = rings_.find(ring);
    return found == rings_.end() ? 0 : found->second.events;
  }
  [[nodiscard]] std::uint64_t last_stamp(std::uint32_t ring) const {
    const auto found = rings_.find(ring);
    return found == rings_.end() ? 0 : found->second.last_stamp;
  }

 private:
  struct position {
    std::uint64_t events = 0;
    std::uint64_t last_stamp = 0;
  };
  std::unordered_map<std::uint32_t, position> rings_;
  position* known_ = nullptr;
  std::uint32_t known_ring_ = 0;
};

/// Passes the events still held by rings to `visitor`, merged as in a drain (record/drain.hpp), without those that the trace
/// already has. If some are in neither, a gap comes first. Returns the number of events passed.
template <class Visitor>
std::uint64_t visit_rings(const vector<live_snapshot::ring>& rings, const ring_positions& positions, Visitor& visitor) {
  struct pending {
    const event* next;
    const event* end;
    std::uint64_t last_stamp;
    std::uint32_t ring;

    [[nodiscard]] std::uint64_t key() const noexcept { return next->stamp != 0 ? next->stamp : last_stamp; }
  };
  const auto is_before = [](const pending& left, const pending& right) noexcept { return left.key() > right.key(); };
  vector<pending> heap;
  std::uint64_t missing = 0;
  for (const live_snapshot::ring& each : rings) {
    const std::uint64_t position = positions.events(each.id);
    const std::uint64_t known = position > each.first_number ? position - each.first_number : 0;
    if (each.first_number > position) missing += each.first_number - position;
    if (known >= each.events.size()) continue;
    const event* const first = each.events.data();
    heap.push_back({first + known, first + each.events.size(), positions.last_stamp(each.id), each.id});
  }
  if (missing != 0) {
    const event gap{0, 0, missing, 0, event_kind::gap, any_space, 0};
    visitor.events(&gap, &gap + 1, no_ring_id);
  }
  std::uint64_t handed_over = 0;
  std::size_t count = heap.size();
  for (std::size_t position = count / 2; position-- > 0;) sift_into_heap(heap.data(), count, position, is_before);
  while (count != 0) {
    pending& top = heap[0];
    std::uint64_t until = ~std::uint64_t{0};
    if (count > 1) until = heap[1].key();
    if (count > 2) until = std::min(until, heap[2].key());
    const event* last = top.next;
    if (top.next->stamp != 0) top.last_stamp = top.next->stamp;
    for (++last; last != top.end && last->stamp <= until; ++last) {
      if (last->stamp != 0) top.last_stamp = last->stamp;
    }
    visitor.events(top.next, last, top.ring);
    handed_over += static_cast<std::uint64_t>(last - top.next);
    top.next = last;
    if (top.next == top.end) heap[0] = heap[--count];
    if (count > 1) sift_into_heap(heap.data(), count, 0, is_before);
  }
  return handed_over;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
