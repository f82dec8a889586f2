#include <memprof/config.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_facts.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_walk.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

std::string tt_space_name(const tt_rank& rank, std::size_t memory) {
  std::string name{tt_space_names[memory]};
  return rank.number.empty() ? name : name + ':' + rank.number;
}

namespace {

/// Turns states into the changes between them. A state is from before its operation: its difference from the previous state is
/// what the previous operation did, and whatever comes between the two (ends of operations and programs, a failure) has to wait
/// for it. Both passes over a log use this class, so they agree.
class tt_log_walk final : public tt_log_sink {
 public:
  tt_log_walk(tt_walk_target& target, std::filesystem::path path) : target_(target), path_(std::move(path)) {}

  void operation(const tt_rank& rank, const tt_executed_operation& executed, const tt_memory_state& state) override {
    rank_walk& self = walk_of(rank);
    leave_operation(self);
    settle(self, state, executed.name(), executed.line);
    target_.enter(executed.name());
    self.scopes.push_back({executed.name(), false});
    self.last = executed;
    self.is_last_open = true;
    last_segment_ = tt_end_segment;
  }
  void operation_without_state(const tt_rank& rank, const tt_executed_operation& executed) override {
    rank_walk& self = walk_of(rank);
    leave_operation(self);
    put_off(self, {action_kind::enter, executed.name(), {}, 0});
    self.scopes.push_back({executed.name(), false});
  }
  void program_state(const tt_rank& rank, const tt_memory_state& state) override {
    rank_walk& self = walk_of(rank);
    settle(self, state, "(program)", 0);
    self.last.reset();
    self.is_last_open = false;
  }
  void begin_program(const tt_rank& rank, std::string_view name) override {
    rank_walk& self = walk_of(rank);
    if (self.scopes.size() == 1) leave_operation(self);  // only operations of programs run others
    put_off(self, {action_kind::enter, std::string{name}, {}, 0});
    self.scopes.push_back({std::string{name}, true});
  }
  void end_program(const tt_rank& rank, std::string_view name) override {
    rank_walk& self = walk_of(rank);
    for (bool is_found = false; !is_found && !self.scopes.empty(); self.scopes.pop_back()) {
      is_found = self.scopes.back().is_program && self.scopes.back().name == name;
      put_off(self, {action_kind::leave, {}, {}, 0});
    }
    if (self.scopes.empty()) put_off(self, {action_kind::end_segment, std::string{name}, {}, 0});
  }
  void out_of_memory(const tt_rank& rank, const tt_out_of_memory& failure, std::uint64_t line) override {
    rank_walk& self = walk_of(rank);
    if (self.failure == failure) return;  // the exception repeats it
    self.failure = failure;
    put_off(self, {action_kind::out_of_memory, {}, failure, line});
    if (self.is_last_open && self.pending.size() == 1) apply(self, 1);
  }

  /// Call after the end of the log.
  void finish() {
    for (auto& [index, self] : ranks_) {
      target_.on_rank(self.rank);
      apply(self, self.pending.size());
      if (self.is_last_open) target_.unseen(self.rank, *self.last);
      for (; !self.scopes.empty(); self.scopes.pop_back()) {
        if (self.scopes.size() == 1 && is_of_segments(self)) last_segment_ = self.scopes.back().name;
        target_.leave();
      }
    }
  }

  /// The name of the segment that ends with the log; empty if nothing followed the last one.
  [[nodiscard]] const std::string& last_segment() const noexcept { return last_segment_; }

 private:
  enum class action_kind : std::uint8_t { enter, leave, end_segment, out_of_memory };
  struct action {
    action_kind kind;
    std::string name;
    tt_out_of_memory failure;
    std::uint64_t line;
  };
  struct scope {
    std::string name;
    bool is_program;
  };
  struct memory_walk {
    bool is_known = false;
    std::int64_t level = 0;
    tt_blocks blocks;
  };
  struct rank_walk {
    tt_rank rank;
    bool has_state = false;
    std::array<memory_walk, tt_memory_count> memories;
    std::optional<tt_executed_operation> last;  ///< whose effect the next state shows
    bool is_last_open = false;                  ///< whether `target` is within it
    std::vector<scope> scopes;                  ///< once all pending actions have been applied
    std::vector<action> pending;
    std::optional<tt_out_of_memory> failure;
  };

  rank_walk& walk_of(const tt_rank& rank) {
    rank_walk& self = ranks_[rank.index];
    self.rank = rank;
    target_.on_rank(rank);
    return self;
  }

  void leave_operation(rank_walk& self) {
    if (self.scopes.empty() || self.scopes.back().is_program) return;
    self.scopes.pop_back();
    put_off(self, {action_kind::leave, {}, {}, 0});
  }

  void put_off(rank_walk& self, action&& what) {
    constexpr std::size_t max_pending = 4096;
    if (self.pending.size() == max_pending) {
      apply(self, max_pending);
      self.is_last_open = false;
    }
    self.pending.push_back(std::move(what));
  }

  /// Applies the first `count` pending actions.
  void apply(rank_walk& self, std::size_t count) {
    for (std::size_t index = 0; index < count; ++index) {
      const action& next = self.pending[index];
      switch (next.kind) {
        case action_kind::enter: target_.enter(next.name); break;
        case action_kind::leave: target_.leave(); break;
        case action_kind::end_segment: end_segment(self, next.name); break;
        case action_kind::out_of_memory: target_.out_of_memory(self.rank, next.failure, next.line); break;
      }
    }
    self.pending.erase(self.pending.begin(), self.pending.begin() + static_cast<std::ptrdiff_t>(count));
  }

  /// The programs of one rank, the first seen, define the segments of all.
  [[nodiscard]] bool is_of_segments(const rank_walk& self) {
    if (!segment_rank_) segment_rank_ = self.rank.index;
    return *segment_rank_ == self.rank.index;
  }
  void end_segment(const rank_walk& self, std::string_view name) {
    if (!is_of_segments(self)) return;
    target_.end_segment(name);
    last_segment_.clear();
  }

  /// Assigns what a state shows to the right place among the pending actions.
  void settle(rank_walk& self, const tt_memory_state& state, std::string_view before, std::uint64_t line) {
    target_.next_state();
    self.failure.reset();
    if (!self.has_state) {
      self.has_state = true;
      target_.enter(tt_before_log);
      change(self, state, before, line);
      target_.leave();
      if (has_blocks_) end_segment(self, tt_before_segment);
    } else {
      // If the operation with the last state is over, the change belongs to the last operation begun since, if any.
      std::size_t count = 0;
      for (std::size_t index = self.is_last_open ? 0 : self.pending.size(); index > 0 && count == 0; --index) {
        if (self.pending[index - 1].kind == action_kind::enter) count = index;
      }
      apply(self, count);
      change(self, state, before, line);
    }
    last_segment_ = tt_end_segment;
    apply(self, self.pending.size());
  }

  void change(rank_walk& self, const tt_memory_state& state, std::string_view before, std::uint64_t line) {
    for (std::size_t memory = 0; memory < tt_memory_count; ++memory) {
      if (!state[memory]) continue;
      memory_walk& of = self.memories[memory];
      if (!of.is_known && ++spaces_ > max_spaces)
        raise_about_file("read", path_, "it has states of more than " + std::to_string(max_spaces / tt_memory_count) + " ranks");
      of.is_known = true;
      target_.state(self.rank, memory, *state[memory], before, line);
      const std::int64_t level = state[memory]->banks * bytes_of_mebibytes(state[memory]->allocated);
      const std::int64_t change = level - of.level;
      of.level = level;
      if (change > 0) grow(self, memory, change);
      if (change < 0) shrink(self, memory, -change);
    }
  }

  void grow(rank_walk& self, std::size_t memory, std::int64_t bytes) {
    constexpr std::uint64_t last_address = std::uint64_t{1} << 62;
    if (static_cast<std::uint64_t>(bytes) > last_address - next_address_)
      raise_about_file("read", path_, "its allocations add up to more than 2^62 bytes: no run allocates that much");
    tt_blocks::block made{next_block_++, next_address_, bytes, {}};
    if (self.last && !self.last->mlir.result.empty()) made.tensor = tensor_of(*self.last, self.last->mlir.result);
    next_address_ += static_cast<std::uint64_t>(bytes);
    has_blocks_ = true;
    target_.allocate(self.rank, memory, made, self.last ? &*self.last : nullptr);
    self.memories[memory].blocks.add(std::move(made));
  }
  void shrink(rank_walk& self, std::size_t memory, std::int64_t bytes) {
    std::vector<std::string> tensors;
    if (self.last && is_deallocation(self.last->mlir)) {
      for (const std::string& input : self.last->mlir.inputs) tensors.push_back(tensor_of(*self.last, input));
    }
    self.memories[memory].blocks.remove(bytes, tensors, [&](const tt_blocks::block& from, std::int64_t part) {
      target_.deallocate(self.rank, memory, from, part);
    });
  }

  /// The name of a value is local to its program.
  [[nodiscard]] static std::string tensor_of(const tt_executed_operation& executed, std::string_view value) {
    return executed.program + ' ' + std::string{value.substr(0, value.find_first_of(":#"))};
  }

  static constexpr std::size_t max_spaces = 252;  // besides `cpu`, out of the 255 that a trace can have

  tt_walk_target& target_;
  std::filesystem::path path_;
  std::map<std::size_t, rank_walk> ranks_;
  std::optional<std::size_t> segment_rank_;
  std::string last_segment_;
  std::size_t spaces_ = 0;
  std::uint64_t next_block_ = 0;
  std::uint64_t next_address_ = std::uint64_t{1} << 12;
  bool has_blocks_ = false;
};

}  // namespace

tt_walked_log walk_tt_log(std::FILE* file, const std::filesystem::path& path, tt_walk_target& target) {
  tt_log_walk walk{target, path};
  tt_log_reading reading = read_tt_lines(file, path, walk);
  walk.finish();
  return {std::move(reading), walk.last_segment()};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
