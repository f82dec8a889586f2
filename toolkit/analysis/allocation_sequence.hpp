#pragma once

#include <memprof/ledger/live_blocks.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/operation_visitor.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/saved_state_collector.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
class state_reader;
}  // namespace detail

/// What happens to a block in a step.
enum class step_kind : std::uint8_t {
  allocate,
  deallocate,
  request_deallocation,   ///< it is freed, and streams may still use it
  complete_deallocation,  ///< no stream uses the freed block any more
  empty_cache,            ///< of no block: the program had a pool give back what it had cached
};

/// An allocation or a free.
struct allocation_step {
  std::uint64_t bytes;        ///< requested bytes; 0: a free
  std::uint64_t event : 45;   ///< index among all events, from 0
  std::uint64_t stream : 16;  ///< of an allocation or a pool: index into `allocation_sequence::streams`
  step_kind kind : 3;
  std::uint32_t block;      ///< number of the block; numbers of freed blocks are reused
  std::uint32_t operation;  ///< the innermost open on its thread: a node of `allocation_sequence::operations`
};
static_assert(sizeof(allocation_step) == 24);

/// The allocations and frees of one memory space in order, without addresses: what an allocator model can replay as often as
/// needed. A fold over a trace that treats anomalies as the ledger does.
///
/// Takes 24 bytes of heap per step. Not synchronised.
class allocation_sequence {
 public:
  /// Selects the space by its number in the trace, or by name.
  explicit allocation_sequence(std::uint8_t space) : space_(space) {}
  explicit allocation_sequence(std::string_view space) : space_name_(space), space_(extend::any_space) {}
  allocation_sequence(const allocation_sequence&) = delete;
  allocation_sequence& operator=(const allocation_sequence&) = delete;

  // --- a trace_visitor ----------------------------------------------------------------------------------------------

  void info(const extend::capture_info& info) noexcept { visitor_.infer_from(info.leading_thread); }
  void name(extend::label id, std::string_view text) noexcept;
  void space(const extend::space_definition& space) noexcept;
  void facts(extend::fact_part&&) noexcept {}

  /// Adds the events [first, last) of one thread, identified by `ring`, in order; those of other memory spaces are only counted.
  /// Raises an error if there is no memory for the table of live blocks.
  void events(const extend::event* first, const extend::event* last, std::uint32_t ring);

  /// Continues from a saved state if events before it are missing: blocks that disappeared meanwhile are freed, and new ones are
  /// allocated in their original order. False if it is damaged.
  bool saved_state(const detail::saved_state_part& part);

  [[nodiscard]] const std::vector<allocation_step>& steps() const noexcept { return steps_; }
  /// The streams and pools that blocks were allocated for, by the labels of their `stream_and_pool`. The first has label 0: none
  /// was named. Those beyond 65,536 count as it.
  [[nodiscard]] const std::vector<extend::label>& streams() const noexcept { return streams_; }
  /// An upper bound of the block numbers: the maximum number of live blocks.
  [[nodiscard]] std::uint32_t block_count() const noexcept { return block_count_; }
  [[nodiscard]] const detail::operation_tree& operations() const noexcept { return visitor_.operations(); }
  /// The names in the trace.
  [[nodiscard]] const detail::label_table& names() const noexcept { return names_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  /// Frees of blocks that no event had allocated; they have no steps.
  [[nodiscard]] std::uint64_t unmatched_frees() const noexcept { return unmatched_frees_; }
  /// Allocations at a live address; a step frees the older block first.
  [[nodiscard]] std::uint64_t replaced_allocations() const noexcept { return replaced_allocations_; }

 private:
  /// Instead of a number, for blocks of 0 bytes: as in PyTorch, they do not reach the allocator.
  static constexpr std::uint64_t no_block = ~std::uint64_t{0};

  [[nodiscard]] detail::thread_scopes& thread_in(std::uint32_t ring);
  [[nodiscard]] detail::thread_scopes* thread_of_number(std::uint32_t number);
  [[nodiscard]] bool take_saved_state();
  void take_blocks(detail::state_reader& in, detail::live_blocks& found);
  void take_threads(detail::state_reader& in);
  void take_adoptions(detail::state_reader& in);
  [[nodiscard]] std::uint32_t operation_of(const detail::thread_scopes& on) const noexcept {
    return visitor_.works_for(on).scopes.operation();
  }
  void go_on_with(detail::live_blocks& found);
  void allocate(const extend::event& recorded, const detail::thread_scopes& on);
  void deallocate(std::uint64_t address, const detail::thread_scopes& on);
  /// Frees a block that streams may still use.
  void request_deallocation(std::uint64_t address, const detail::thread_scopes& on);
  /// Does nothing if no freed block at the address awaits its streams.
  void complete_deallocation(std::uint64_t address, std::uint32_t operation);

  /// Frees in the order of addresses.
  void deallocate_range(const extend::event& recorded, const detail::thread_scopes& on);
  void free_block(std::uint64_t block, std::uint32_t operation);
  /// One step for all that is given back together.
  void empty_cache(const extend::event& recorded);
  [[nodiscard]] std::uint32_t number_of_new_block();
  [[nodiscard]] std::uint16_t stream_of(extend::label name);
  void add_step(step_kind kind, std::uint64_t block, std::uint32_t operation, std::uint64_t bytes = 0, std::uint16_t stream = 0);

  std::string space_name_;
  std::uint8_t space_;
  std::uint64_t events_ = 0;
  bool is_missing_events_ = false;  ///< events are missing since the last saved state
  detail::saved_state_collector saved_state_;
  std::uint64_t unmatched_frees_ = 0;
  std::uint64_t replaced_allocations_ = 0;
  std::uint32_t block_count_ = 0;
  std::vector<allocation_step> steps_;
  detail::live_blocks live_;                                  // `owner` is the block's number
  std::vector<std::uint32_t> unused_;                         // numbers of freed blocks
  std::unordered_map<std::uint64_t, std::uint32_t> awaited_;  // freed blocks that streams may still use, by address
  std::vector<extend::label> streams_{0};
  std::uint16_t last_stream_ = 0;
  detail::label_table names_;
  detail::operation_visitor visitor_;
  std::map<std::uint32_t, std::unique_ptr<detail::thread_scopes>> threads_;  // by ring
};
static_assert(extend::trace_visitor<allocation_sequence>);

}  // namespace memprof::inline MEMPROF_ABI
