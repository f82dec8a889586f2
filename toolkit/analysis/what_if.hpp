#pragma once

#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/trace/category.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The peak that a run would have had without some of its blocks, with others of another size, or with shorter lives: the run is
/// replayed with the change, so that what remains may have its peak elsewhere.

namespace memprof::inline MEMPROF_ABI {

/// What is to change. Owners are operations: a path with all below it, whose names may be globs (`h.*/attn`, `**/softmax`), or
/// `outside_every_operation`.
struct what_if_change {
  struct retyping {
    std::string owner;
    std::string from;  ///< the element type of blocks for which the trace has none; empty: those stay as they are
    std::string to;
  };
  /// Blocks that grow with the batch.
  struct batching {
    double factor = 1;  ///< times the run's batch size
    /// The run's batch size, of which the first dimension of what scales is a multiple; 0: that of the blocks of category
    /// `input`.
    std::int64_t batch_size = 0;
    const block_history* other = nullptr;  ///< the same program with another batch size: what differs scales; null: shapes say
  };
  std::vector<std::string> without{};  ///< owners whose blocks were never allocated
  std::vector<category> without_categories{};
  std::vector<retyping> types{};  ///< the first whose owner matches applies
  std::optional<batching> batch{};
  std::vector<std::string> recompute{};  ///< owners whose calls are repeated in the backward pass
  std::vector<std::string> offload{};    ///< owners whose blocks are elsewhere between their call and their free
  bool free_at_last_use = false;  ///< blocks but parameters and optimizer state are freed as soon as nothing uses them any more
};

/// A peak, and what is live then.
struct what_if_peak {
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
  std::string segment;           ///< in which it is
  std::int64_t occurrence = 0;   ///< of that segment, from 1
  std::int64_t occurrences = 0;  ///< how many segments have that name
  std::string operation;         ///< path of the one that reached it; empty: none was open
  bool is_return = false;        ///< reached by blocks that come back: recomputed, or fetched from where they were offloaded
};

/// Bytes of an owner at both peaks.
struct what_if_owner {
  std::string owner;  ///< layers that differ in a number are one, as `h.*/attn`
  std::int64_t before = 0;
  std::int64_t after = 0;
  std::int64_t blocks_before = 0;
  std::int64_t blocks_after = 0;
};

/// What the change costs, and what of it is not known.
struct what_if_price {
  std::int64_t recomputed_calls = 0;
  std::int64_t recomputed_allocations = 0;
  std::int64_t recomputed_bytes = 0;
  std::int64_t held_bytes = 0;  ///< at the new peak: what a recomputed call in its first run holds to its end, but not its newest
  std::int64_t offloaded_blocks = 0;  ///< copied out
  std::int64_t offloaded_bytes = 0;
  std::int64_t fetched_bytes = 0;      ///< copied back
  std::int64_t offloaded_peak = 0;     ///< the most that is elsewhere at one moment
  std::int64_t unreturned_blocks = 0;  ///< of those copied out, never freed: a trace does not say when they are used
  std::int64_t unmoved_blocks = 0;     ///< of the owners to offload: never freed and without a category; they stay
  std::int64_t unmoved_bytes = 0;      ///< theirs
  std::int64_t untyped_bytes = 0;      ///< at the old peak: of the owners to retype, with no known element type
  std::int64_t retyped_blocks = 0;     ///< of another size for their type, over the whole run
  std::int64_t batch_size = 0;         ///< that shapes were compared with; 0: another run said what scales
  double batch_ratio = 0;              ///< of the other run's batch size to this one's; 0: no other run
  std::int64_t scaled_bytes = 0;       ///< at the old peak: what scales with the batch
  std::int64_t unused_bytes = 0;       ///< at the old peak, with `free_at_last_use`: of blocks with no known use; they stay
  std::int64_t unmatched_uses = 0;     ///< with `free_at_last_use`: those that name no live block, whose blocks may end too early
  std::int64_t unshaped_bytes = 0;     ///< at the old peak: activations and such whose shape is not known; they do not scale
  std::int64_t inner_batch_bytes = 0;  ///< at the old peak: of a shape with the batch in another dimension; they do not scale
};

struct what_if_result {
  std::string space;
  bool exact = false;                ///< whether the run was; without, lost frees look like blocks that stay
  std::vector<std::string> remarks;  ///< of the run, and of the other one that says what scales
  what_if_peak before;
  what_if_peak after;
  std::int64_t changed_blocks = 0;    ///< of the whole run: gone, of another size, or live for another time
  std::vector<what_if_owner> owners;  ///< add up to both peaks; most bytes at the new one first
  std::vector<what_if_owner> categories;
  what_if_price price;
  bool is_recomputed = false;        ///< the change has owners to recompute
  std::int64_t reserved_before = 0;  ///< by the caching allocator's model, if the trace has allocator events; else 0
  std::int64_t reserved_after = 0;

  [[nodiscard]] std::int64_t saved() const noexcept { return before.bytes - after.bytes; }
};

/// Whether an owner names any operation of the run.
[[nodiscard]] bool has_owner(const block_history& run, std::string_view owner);

/// The paths of all operations, and the same with layers folded.
[[nodiscard]] std::vector<std::string> owner_names(const block_history& run);

/// Replays a run with a change. Takes time for sorting its blocks by their free. `recompute`, `offload` and
/// `free_at_last_use` need the calls. Throws `memprof::error` if an owner is not there, no use of a block is recorded, an element
/// type is unknown, nothing says what scales with the batch, or the other run is of another program.
[[nodiscard]] what_if_result what_if(const block_history& run, const what_if_change& change);

}  // namespace memprof::inline MEMPROF_ABI
