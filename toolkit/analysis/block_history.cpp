#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/ledger/operation_tree.hpp>
#include <memprof/ledger/scope_stack.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// "[768, 2304]"; empty if it is none.
std::vector<std::int64_t> sizes_of(std::string_view shape) {
  std::vector<std::int64_t> sizes;
  const char* const end = shape.data() + shape.size();
  for (const char* at = shape.data(); at != end;) {
    std::int64_t size = 0;
    const auto [next, fault] = std::from_chars(at, end, size);
    if (fault == std::errc{}) sizes.push_back(size);
    at = fault == std::errc{} ? next : at + 1;
  }
  return sizes;
}

/// The names of libtorch and numpy, in those of `dtype`; others as they are.
std::string short_dtype(std::string_view name) {
  using names = std::array<std::string_view, 2>;
  constexpr std::array<names, 6> known{{{"float32", "fp32"},
                                        {"bfloat16", "bf16"},
                                        {"float16", "fp16"},
                                        {"float64", "fp64"},
                                        {"float", "fp32"},
                                        {"double", "fp64"}}};
  for (const auto& [long_name, short_name] : known) {
    if (name == long_name) return std::string{short_name};
  }
  if (name.starts_with("float8") || name.starts_with("Float8")) return "fp8";
  return std::string{name};
}

/// From `name\x1fshape\x1fdtype[...]`.
block_history::tensor tensor_of(std::string_view annotation) {
  const auto next_field = [&] {
    const std::size_t end = std::min(annotation.find(name_separator), annotation.size());
    const std::string_view field = annotation.substr(0, end);
    annotation.remove_prefix(std::min(end + 1, annotation.size()));
    return field;
  };
  (void)next_field();
  const std::string_view shape = next_field();
  return {sizes_of(shape), short_dtype(next_field())};
}

class history_reader : public replay_handler {
 public:
  history_reader(std::string_view space, bool with_calls) : with_calls_{with_calls} {
    result_.space = space;
    if (with_calls) result_.calls.emplace_back();
  }

  void on_allocation(const replay_state& at, const replayed_block& block) {
    if (!is_asked(at, block.space)) return;
    history_block& made = result_.blocks.emplace_back();
    made.bytes = static_cast<std::int64_t>(block.bytes);
    made.begin = next_event();
    made.operation = block.operation;
    made.category = block.category;
    made.born_in = innermost_call(block.thread);
    take_annotation(at, block, made);
  }
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t thread) {
    if (!is_asked(at, block.space)) return;
    history_block& freed = block_of(block);
    freed.end = next_event();
    freed.freed_in = innermost_call(thread);
  }
  void on_annotation(const replay_state& at, const replayed_block& block, category) {
    if (!is_asked(at, block.space)) return;
    history_block& named = block_of(block);
    named.category = block.category;
    take_annotation(at, block, named);
  }
  void on_use(const replay_state& at, const replayed_block& block, std::uint32_t thread, bool until_operation_ends) {
    if (!with_calls_ || !is_asked(at, block.space)) return;
    const auto index = static_cast<std::uint32_t>(block.ordinal - 1);
    note_use(index, result_.events);
    const std::uint32_t call = until_operation_ends ? innermost_call(thread) : 0;
    if (call == 0) return;
    std::vector<std::uint32_t>& blocks = used_in_[call];
    // A long operation may use a block in each step.
    if (last_call_.size() <= index) last_call_.resize(result_.blocks.size());
    if (std::exchange(last_call_[index], call) != call) blocks.push_back(index);
  }
  void on_unmatched_use(const replay_state&, const event&) { ++result_.unmatched_uses; }
  void on_operations(const replay_state&, std::uint32_t thread, const scope_stack& open) {
    if (!with_calls_) return;
    std::vector<open_call>& calls = open_calls_[thread];
    const auto is_in_step = [&] {
      return calls.size() <= open.depth() && (calls.empty() || calls.back().number == open[calls.size() - 1].number);
    };
    for (std::size_t index = calls.size(); index-- > 0 && !is_in_step();) {
      if (open.find(calls[index].number) != open.depth()) continue;
      end_call(calls[index].call);
      calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(index));
    }
    while (calls.size() < open.depth()) {
      const open_scope& begun = open[calls.size()];
      const std::uint32_t parent = calls.empty() ? 0 : calls.back().call;
      calls.push_back({begun.number, static_cast<std::uint32_t>(result_.calls.size())});
      result_.calls.push_back({begun.operation, parent, result_.events + 1});
    }
  }
  void on_segment_end(const replay_state& at, label name) {
    result_.segments.push_back({name, result_.events});
    const auto [known, is_new] = result_.segment_names.try_emplace(name);
    if (is_new) known->second = at.names.text(name);
  }
  void on_allocator_event(const replay_state& at, const event& happened, std::uint32_t) {
    if (happened.kind == event_kind::reserve && is_asked(at, happened.space)) result_.has_allocator = true;
  }

  block_history take(const replay_state& at) {
    for (const auto& [call, blocks] : used_in_) {  // these never ended
      for (const std::uint32_t block : blocks) note_use(block, result_.events);
    }
    if (!result_.uses.empty()) result_.uses.resize(result_.blocks.size());
    const operation_tree& operations = at.operations();
    for (std::size_t index = 0; index < operations.size(); ++index) {
      const operation_tree::node& node = operations[index];
      result_.operations.push_back({node.parent, index == 0 ? std::string{} : std::string{at.names.text(node.name)}});
    }
    return std::move(result_);
  }

 private:
  struct open_call {
    std::uint32_t number;  ///< as counted by its thread
    std::uint32_t call;
  };

  [[nodiscard]] bool is_asked(const replay_state& at, std::uint8_t space) const { return at.space_name(space) == result_.space; }
  [[nodiscard]] history_block& block_of(const replayed_block& block) { return result_.blocks[block.ordinal - 1]; }
  void note_use(std::uint32_t block, event_number last) {
    if (result_.uses.size() <= block) result_.uses.resize(result_.blocks.size());
    result_.uses[block] = {true, std::max(result_.uses[block].last, last)};
  }
  void end_call(std::uint32_t call) {
    result_.calls[call].end = result_.events + 1;
    const auto found = used_in_.find(call);
    if (found == used_in_.end()) return;
    for (const std::uint32_t block : found->second) note_use(block, result_.events);
    used_in_.erase(found);
  }
  event_number next_event() {
    if (result_.events == never_freed - 1) raise("the trace has more than 4 billion allocations and frees in one memory space");
    return ++result_.events;
  }
  [[nodiscard]] std::uint32_t innermost_call(std::uint32_t thread) {
    if (!with_calls_) return 0;
    const std::vector<open_call>& calls = open_calls_[thread];
    return calls.empty() ? 0 : calls.back().call;
  }
  void take_annotation(const replay_state& at, const replayed_block& from, history_block& to) {
    if (from.annotation == 0 || from.annotation == to.annotation) return;
    to.annotation = from.annotation;
    const auto [known, is_new] = result_.annotations.try_emplace(from.annotation);
    if (is_new) known->second = tensor_of(at.names.text(from.annotation));
  }

  block_history result_;
  bool with_calls_;
  std::unordered_map<std::uint32_t, std::vector<open_call>> open_calls_;   // by thread
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> used_in_;  // what open calls use until they end
  std::vector<std::uint32_t> last_call_;                                   // of each block: the last one that does so
};

/// Passes a trace on, and refuses one of whose events some are missing before the last.
class complete_trace {
 public:
  explicit complete_trace(history_reader& reader) : replay_{reader, no_clock_} {}

  void info(const capture_info& info) { replay_.info(info); }
  void name(label id, std::string_view text) { replay_.name(id, text); }
  void space(const space_definition& space) { replay_.space(space); }
  void facts(fact_part&& part) { replay_.facts(std::move(part)); }
  void events(const event* first, const event* last, std::uint32_t ring) {
    for (const event* next = first; next != last; ++next) {
      if (next->kind == event_kind::gap) {
        has_gap_ = true;
      } else if (has_gap_ && has_address(next->kind)) {
        raise(
            "the trace lacks its first events, because it was recorded with a trace_limit: blocks from then are unknown, so "
            "nothing can be replayed; record the run without a limit");
      }
    }
    replay_.events(first, last, ring);
  }
  [[nodiscard]] const replay_state& state() const noexcept { return replay_.state(); }

 private:
  clock_readings no_clock_;  ///< no time is needed
  trace_replay<history_reader> replay_;
  bool has_gap_ = false;
};

}  // namespace
}  // namespace detail

std::vector<std::string> block_history::path(std::uint32_t of) const {
  std::vector<std::string> names;
  for (std::uint32_t node = of; node != 0; node = operations[node].parent) names.push_back(operations[node].name);
  std::reverse(names.begin(), names.end());
  return names;
}

block_history read_block_history(const trace_source_view& source, std::string_view space, bool with_calls) {
  detail::history_reader reader{space, with_calls};
  detail::complete_trace visitor{reader};
  source.visit(visitor);
  return reader.take(visitor.state());
}

}  // namespace memprof::inline MEMPROF_ABI
