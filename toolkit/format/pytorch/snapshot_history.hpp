#pragma once

#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_facts.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The result of reading a snapshot once: segments, settings, annotations, and above all what was live before its history begins.
/// Readers of all encodings hand their records to it.
class torch_history final : public torch_record_sink {
 public:
  struct live_block {
    std::uint64_t bytes;
    std::uint32_t stack;
    label stream;                ///< index into `streams`
    bool is_awaited = false;     ///< freed before the history, but still in use
    bool is_completed = false;   ///< the history has the completion of its free
    bool is_in_segment = false;  ///< and is in the segments
  };
  struct range {
    std::uint64_t bytes;
    label stream;
  };
  struct device_state {
    std::uint64_t events = 0;
    bool is_full = false;                        ///< the history's ring buffer has lost older events
    std::map<std::uint64_t, live_block> before;  ///< blocks that were live before the history
    std::map<std::uint64_t, range> reserved_before;

   private:
    friend torch_history;
    struct seen_block {
      std::uint64_t bytes;
      enum : std::uint8_t { live, requested, completed } state;
    };
    bool has_requests_ = false;                           // of frees: an old history reports only when frees were completed
    std::vector<std::uint64_t> completed_only_;           // addresses of blocks from before the history
    std::unordered_map<std::uint64_t, seen_block> seen_;  // by address: the last block there that was allocated in the history
    std::map<std::uint64_t, std::uint64_t> reserved_;     // the history's segments: bytes by address
    std::unordered_set<std::uint64_t> segments_;          // addresses of the snapshot's segments
  };

  torch_history(std::filesystem::path path, stack_frames frames) : stacks(frames), path_(std::move(path)) {}

  // --- a sink of records --------------------------------------------------------------------------------------------

  [[nodiscard]] std::uint64_t event_count(std::size_t number) override { return device(number).events; }
  void setting(std::string_view name, const std::string& value) override;
  void unknown_section(std::string_view key) override;
  void annotation(const torch_annotation& made) override;
  void segment(const torch_segment& made) override;
  void event(std::size_t number, const torch_event& happened) override;
  void overflowed(std::size_t number) override;

  /// Ends the reading: compares what is live according to the history with the segments. What only the segments have was live
  /// before.
  void finish();

  // --- results ------------------------------------------------------------------------------------------------------

  /// The name of a stream and pool as used in traces, in `streams`.
  [[nodiscard]] label stream_of(std::int64_t stream, const torch_pool& pool);
  [[nodiscard]] std::vector<torch_segment_fact> segment_facts() const;

  /// Whether a device's history has lost older events.
  [[nodiscard]] bool is_full() const;
  /// About how many blocks history and segments disagree, as a sentence; empty if they agree.
  [[nodiscard]] std::string disagreement() const;
  /// The same for events that contradict earlier ones.
  [[nodiscard]] std::string impossibility() const;

  /// What a reader of the trace should know. If the file is cut off, the history lacks part of what the segments have.
  [[nodiscard]] std::vector<std::string> remarks(bool is_cut_off) const;

  torch_stacks stacks;
  label_table streams;
  std::map<std::size_t, device_state> devices;  ///< by number; without a gap, and perhaps `torch_pinned`
  std::vector<torch_segment> segments;
  std::vector<torch_annotation> annotations;  ///< in order of time
  std::vector<torch_setting_fact> settings;
  std::int64_t begin_us = std::numeric_limits<std::int64_t>::max();  ///< the earliest one
  std::uint64_t blocks_before = 0;
  std::uint64_t bytes_before = 0;
  std::uint64_t awaited_before = 0;  ///< blocks freed before the history, but still in use
  std::uint64_t contradictions = 0;  ///< blocks live at the end of the history that the segments lack, or have with another size
  std::uint64_t impossible_events = 0;        ///< that contradict earlier ones
  std::string first_impossible;               ///< the first contradiction
  std::uint64_t unknown_events = 0;           ///< with an action of a newer PyTorch
  std::string unknown_action;                 ///< of the first of them
  std::vector<std::string> unknown_sections;  ///< keys of the snapshot, quoted

 private:
  [[noreturn]] void refuse(const std::string& fault) const;

  [[nodiscard]] device_state& device(std::size_t number);
  void note_impossible(std::size_t number, const torch_event& happened, const std::string& what);
  void note_allocation(device_state& on, std::size_t number, const torch_event& made);
  void note_free(device_state& on, std::size_t number, const torch_event& freed, bool is_completed);
  /// The history lacks, or no longer has, the allocation of the block: it was live before.
  void note_free_before(device_state& on, std::size_t number, const torch_event& freed, bool is_completed);
  /// Compares a block as it is at the end with the history, which may or may not have it.
  void compare(device_state& on, const torch_segment& segment, const torch_block& block, label stream);
  /// False if an earlier block at the address is known: the address may be reused after it.
  [[nodiscard]] bool add_before(device_state& on, const torch_event& freed);
  void note_time(std::int64_t time_us);
  /// An expandable segment may have parts that the history saw mapped and parts that it did not.
  static void add_reserved(device_state& on, const torch_segment& segment, label stream);

  std::filesystem::path path_;
  bool has_other_unknown_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
