#pragma once

#include <memprof/capture/options.hpp>
#include <memprof/capture/other_registries.hpp>
#include <memprof/core/clock.hpp>
#include <memprof/core/drain.hpp>
#include <memprof/core/event_log.hpp>
#include <memprof/core/recorder.hpp>
#include <memprof/core/registry.hpp>
#include <memprof/core/short_name.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace memprof::detail {

/// What a capture does with its backends, of whatever types they are.
struct backend_calls {
  void (*detach)(void* backends) noexcept;
  void (*describe)(const void* backends, profile& result);  ///< null if none of them has anything to add
  void (*destroy)(void* backends) noexcept;
};

/// Owns the backends of a capture, which outlive it for as long as its profile can be read. Not to be destroyed under the
/// registry's lock: backends may call us.
class kept_backends {
 public:
  kept_backends() noexcept = default;
  kept_backends(void* backends, const backend_calls* calls) noexcept : backends_(backends), calls_(calls) {}
  kept_backends(kept_backends&& other) noexcept
      : backends_(std::exchange(other.backends_, nullptr)), calls_(other.calls_), is_attached_(other.is_attached_) {}
  kept_backends& operator=(kept_backends&& other) noexcept {
    std::swap(backends_, other.backends_);
    std::swap(calls_, other.calls_);
    std::swap(is_attached_, other.is_attached_);
    return *this;
  }
  ~kept_backends() {
    if (backends_ == nullptr) return;
    const nested_allocation hidden;
    if (is_attached_) calls_->detach(backends_);
    calls_->destroy(backends_);
  }

  /// What switches them off; null if they are off. Asked once, so that of two threads that end the capture only one does it.
  [[nodiscard]] const backend_calls* take_attached() noexcept {
    return backends_ != nullptr && std::exchange(is_attached_, false) ? calls_ : nullptr;
  }
  [[nodiscard]] void* get() const noexcept { return backends_; }

  void describe(profile& result) const {
    if (backends_ != nullptr && calls_->describe != nullptr) calls_->describe(backends_, result);
  }

 private:
  void* backends_ = nullptr;
  const backend_calls* calls_ = nullptr;
  bool is_attached_ = true;
};

/// One capture: its ledger, and what is needed to say when things happened and what recording them cost. Used under the
/// registry's lock.
struct capture_state {
  explicit capture_state(const capture_options& options, registry& shared)
      : mode(options.mode),
        device(options.device.name),
        begin_unix_ns(unix_ns()),
        begin_ns(monotonic_ns()),
        begin_stamp(shared.stamps.next()),
        begin_drains(shared.drains),
        log(options.log),
        events({options.timeline_points, options.largest_blocks, options.owners_per_segment}, begin_stamp) {}

  run_mode mode;
  short_name device;  ///< empty: none was described
  std::int64_t begin_unix_ns;
  std::int64_t begin_ns;
  std::uint64_t begin_stamp;
  std::uint64_t begin_drains;
  std::int64_t end_ns = 0;  ///< 0 while the capture is active
  std::uint64_t end_stamp = 0;
  std::uint64_t end_drains = 0;
  std::uint64_t drain_stamps = 0;  ///< clock ticks spent in drains
  std::uint64_t profiler_bytes_at_million = 0;
  std::uint64_t dropped_events = 0;  ///< these two are taken over when the capture ends
  std::uint64_t reentrant_events = 0;
  module_paths other_registries;  ///< libraries whose events are missing, as found last
  double record_ns = 0;
  event_log* log;  ///< null: events are not kept
  kept_backends backends;
  ledger events;

  /// The drain's consumer.
  void apply(const event* first, const event* last, std::uint32_t ring_id) noexcept {
    events.apply(first, last, ring_id);
    if (log != nullptr) log->append(first, last, ring_id);
  }
};

inline constexpr std::uint64_t million = 1'000'000;

/// Bytes that the profiler holds: rings, names and the capture.
[[nodiscard]] inline std::uint64_t profiler_bytes(const registry& shared, const capture_state& state) noexcept {
  const std::uint64_t labels = shared.labels == nullptr ? 0 : shared.labels->bytes();
  const reserved_addresses* const reserved = shared.reserved.load(std::memory_order_relaxed);
  return sizeof(registry) + (reserved == nullptr ? 0 : sizeof(reserved_addresses) + reserved->bytes()) + shared.ring_bytes +
         shared.drain_heap_capacity * sizeof(event_ring*) + labels + (sizeof(capture_state) - sizeof(ledger)) +
         state.events.bytes();
}

/// Empties the rings into the active capture: what `registry::drain` points to.
inline void drain_into_capture(registry& shared) noexcept {
  auto& state = *static_cast<capture_state*>(shared.capture);
  const std::uint64_t before = shared.stamps.next();
  drain_rings<no_pauses>(shared, state);
  state.drain_stamps += shared.stamps.next() - before;
  if (state.profiler_bytes_at_million == 0 && state.events.events() >= million) {
    state.profiler_bytes_at_million = profiler_bytes(shared, state);
  }
}

/// Makes a profile of what the capture knows now. Under the lock, drained.
template <class State>
[[nodiscard]] profile make_profile(registry& shared, State& state) {
  const bool has_ended = state.end_ns != 0;
  const std::int64_t now_ns = has_ended ? state.end_ns : monotonic_ns();
  const std::uint64_t now_stamp = has_ended ? state.end_stamp : shared.stamps.next();
  const auto elapsed_stamps = static_cast<double>(std::max<std::uint64_t>(now_stamp - state.begin_stamp, 1));
  const double ns_per_stamp = static_cast<double>(now_ns - state.begin_ns) / elapsed_stamps;

  const label_table no_labels_yet;
  const label_table& labels = shared.labels == nullptr ? no_labels_yet : *shared.labels;
  profile result = build_profile(state.events, {labels, shared.space_names, {state.begin_stamp, ns_per_stamp}, has_ended});
  result.mode = state.mode;
  result.device = state.device.view();
  result.begin_unix_ns = state.begin_unix_ns;
  result.duration_ns = now_ns - state.begin_ns;
  const std::uint64_t dropped = has_ended ? state.dropped_events : shared.dropped_events.load(std::memory_order_relaxed);
  const std::uint64_t reentrant = has_ended ? state.reentrant_events : shared.reentrant_events.load(std::memory_order_relaxed);
  result.anomalies.dropped_events = static_cast<std::int64_t>(dropped);
  result.anomalies.reentrant_events = static_cast<std::int64_t>(reentrant);
  if (dropped != 0 || reentrant != 0) result.exact = false;
  for (std::size_t begin = 0; begin < state.other_registries.size();) {
    result.exact = false;
    result.unrecorded_modules.emplace_back(state.other_registries.data() + begin);
    begin += result.unrecorded_modules.back().size() + 1;
  }

  const std::uint64_t events = state.events.events();
  result.cost.events = static_cast<std::int64_t>(events);
  result.cost.drains = static_cast<std::int64_t>((has_ended ? state.end_drains : shared.drains) - state.begin_drains);
  result.cost.memory_bytes = static_cast<std::int64_t>(profiler_bytes(shared, state));
  result.cost.memory_bytes_at_million_events = static_cast<std::int64_t>(state.profiler_bytes_at_million);
  result.cost.record_ns_per_event = state.record_ns;
  if (events != 0) {
    result.cost.drain_ns_per_event = static_cast<double>(state.drain_stamps) * ns_per_stamp / static_cast<double>(events);
  }
  return result;
}

/// What writing one event costs on this machine, in nanoseconds: the least of a few short rounds in a ring of its own.
[[nodiscard]] inline double measure_record_cost(registry& shared) noexcept {
  constexpr std::uint32_t events_per_round = 256;
  event* const slots = static_cast<event*>(map_pages(events_per_round * sizeof(event)));
  if (slots == nullptr) return 0;
  event_ring ring;
  thread_context context;
  context.ring = &ring;
  registry scratch;
  scratch.order_word.store(1, std::memory_order_relaxed);
  scratch.stamps.chosen.store(shared.stamps.chosen.load(std::memory_order_relaxed), std::memory_order_relaxed);
  context.order_word = 1;
  double best = 0;
  for (int round = 0; round < 8; ++round) {
    context.cursor = slots;
    context.limit = slots + events_per_round;
    const std::int64_t before = monotonic_ns();
    for (std::uint32_t count = 0; count < events_per_round; ++count) {
      record<no_pauses>(scratch, context, {0, count, 1, 0, event_kind::allocate, 0, 0});
    }
    const double cost = static_cast<double>(monotonic_ns() - before) / events_per_round;
    if (round == 0 || cost < best) best = cost;
  }
  unmap_pages(slots, events_per_round * sizeof(event));
  return best;
}

}  // namespace memprof::detail
