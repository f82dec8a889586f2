#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_facts.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_history.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_json.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_pickle.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_reader.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
#include <memprof/toolkit/format/quoted_text.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Writes the contents of a snapshot during the second reading.
class torch_history_writer final : public torch_record_sink {
 public:
  torch_history_writer(torch_history& from, trace_writer& to) : self_(from), writer_(to) {}

  [[nodiscard]] std::uint64_t event_count(std::size_t number) override {
    const auto found = devices_.find(number);
    return found == devices_.end() ? 0 : found->second.events;
  }
  void setting(std::string_view, const std::string&) override {}
  void unknown_section(std::string_view) override {}
  void annotation(const torch_annotation&) override {}
  void segment(const torch_segment&) override {}
  void overflowed(std::size_t) override {}
  void event(std::size_t number, const torch_event& happened) override {
    const auto found = devices_.find(number);
    if (found == devices_.end()) return;  // the file has changed in between
    ++found->second.events;
    using action = torch_action;
    if (happened.action == action::other || happened.action == action::nothing) return;
    if (is_merged_) {
      merged_.push_back({number, happened});
    } else {
      write(number, happened);
    }
  }

  void begin() {
    std::size_t with_history = 0;
    for (const auto& [number, device] : self_.devices) {
      devices_[number].space = writer_.space(number == torch_pinned ? "pinned" : "cuda:" + std::to_string(number));
      if (device.events != 0) ++with_history;
    }
    is_merged_ = with_history > 1;
    writer_.add_facts(to_table(self_.settings));
    writer_.add_facts(to_table(self_.segment_facts()));
    report_missing();
    writer_.on_thread(1, "PyTorch");
    for (const auto& [number, device] : self_.devices) {
      for (const auto& [address, range] : device.reserved_before)
        put(event_kind::reserve, number, address, range.bytes, range.stream);
      if (device.before.empty()) continue;
      const open_operation before = writer_.begin_operation(torch_before_trace, {});
      // Those already freed come first: they were not live together with the others.
      for (const bool is_awaited : {true, false}) {
        for (const auto& [address, block] : device.before) {
          if (block.is_awaited != is_awaited) continue;
          enter(block.stack);
          put(event_kind::allocate_on_stream, number, address, block.bytes, block.stream);
          if (is_awaited) request(number, address, block.bytes, block.stream);
        }
      }
      enter(0);
      writer_.end_operation(before);
    }
    if (self_.blocks_before + self_.awaited_before != 0) writer_.end_segment(torch_before_segment);
  }

  void finish() {
    std::stable_sort(merged_.begin(), merged_.end(),
                     [](const merged_event& left, const merged_event& right) { return left.of.time_us < right.of.time_us; });
    for (const merged_event& each : merged_) write(each.device, each.of);
    put_request();
    enter(0);
    pass_annotations(std::numeric_limits<std::int64_t>::max());
  }

  /// The segment that ends with the history; empty if the history ends with an annotation.
  [[nodiscard]] std::string_view last_segment() const noexcept {
    const bool is_open = self_.annotations.empty() || depth_ != 0 || is_between_used_;
    return is_open ? torch_unnamed_segment : std::string_view{};
  }

 private:
  struct merged_event {
    std::size_t device;
    torch_event of;
  };

  /// What the snapshot does not have, or has where this version cannot read it, must not be lost with what the reader says.
  void report_missing() {
    std::vector<missing_source> rows;
    for (const std::string& key : self_.unknown_sections)
      rows.push_back({key, "a key of the snapshot that this version does not know"});
    if (self_.unknown_events != 0)
      rows.push_back(
          {"events of unknown kinds", "perhaps from a newer PyTorch, the first " + detail::quoted(self_.unknown_action)});
    // At least one for a key, and one before each event that contradicts those before it.
    const std::uint64_t left_out = self_.unknown_events + (self_.unknown_sections.empty() ? 0 : 1) + self_.impossible_events;
    if (left_out != 0) writer_.put_event({0, 0, left_out, 0, event_kind::gap, any_space, 0});
    if (self_.is_full()) rows.push_back({"older events", "the history's ring buffer was full"});
    if (!rows.empty()) writer_.add_facts(to_table(rows));
    for (const std::string& remark : {self_.impossibility(), self_.disagreement()})
      if (!remark.empty()) writer_.add_facts(to_table(std::vector<source_limit>{{remark, 1, 0}}));
  }

  void put(event_kind kind, std::size_t number, std::uint64_t address, std::uint64_t bytes, label stream, std::uint16_t tag = 0) {
    const label name = stream == 0 ? 0 : writer_.label_of(self_.streams.text(stream));
    writer_.put_event({0, address, bytes, name, kind, devices_[number].space.value, tag});
  }

  void request(std::size_t number, std::uint64_t address, std::uint64_t bytes, label stream) {
    put(event_kind::deallocate_on_stream, number, address, bytes, stream, 1);
    devices_[number].awaited.insert(address);
  }
  /// Writes the deferred free.
  void put_request() {
    if (!has_request_) return;
    has_request_ = false;
    const torch_event& freed = request_.of;
    request(request_.device, freed.address, freed.bytes, self_.stream_of(freed.stream, freed.pool));
  }
  /// Whether an event completes the free just before it: nearly all do, and become one event.
  [[nodiscard]] bool completes_request(std::size_t number, const torch_event& next) const {
    const bool is_between_annotations =
        next_annotation_ == self_.annotations.size() || self_.annotations[next_annotation_].time_us > next.time_us;
    return has_request_ && next.action == torch_action::free_completed && request_.device == number &&
           request_.of.address == next.address && is_between_annotations;
  }

  void write(std::size_t number, const torch_event& happened) {
    if (completes_request(number, happened)) {
      has_request_ = false;
      const label stream = self_.stream_of(happened.stream, happened.pool);
      return put(event_kind::deallocate_on_stream, number, happened.address, happened.bytes, stream);
    }
    put_request();
    pass_annotations(happened.time_us);
    is_between_used_ = is_between_used_ || depth_ == 0;
    at(happened.time_us);
    const label stream = self_.stream_of(happened.stream, happened.pool);
    using action = torch_action;
    switch (happened.action) {
      case action::alloc:
        enter(happened.stack);
        put(event_kind::allocate_on_stream, number, happened.address, happened.bytes, stream, happened.category.tag());
        if (happened.metadata != 0) writer_.annotate(block_address{happened.address}, {self_.stacks.name(happened.metadata)});
        break;
      case action::free_requested:
        enter(happened.stack);
        request_ = {number, happened};
        has_request_ = true;
        break;
      case action::free_completed:
        if (devices_[number].awaited.erase(happened.address) != 0) {
          put(event_kind::complete_deallocation, number, happened.address, happened.bytes, 0);
        } else {  // old snapshots have no requests
          enter(happened.stack);
          put(event_kind::deallocate_on_stream, number, happened.address, happened.bytes, stream);
        }
        break;
      case action::segment_alloc: put(event_kind::reserve, number, happened.address, happened.bytes, stream); break;
      case action::segment_free: put(event_kind::release, number, happened.address, happened.bytes, stream); break;
      case action::oom:
        enter(happened.stack);
        put(event_kind::out_of_memory, number, happened.device_free.value_or(unknown_device_free), happened.bytes, 0);
        break;
      default: break;
    }
  }

  void at(std::int64_t time_us) {
    constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max() / 1000;
    if (time_us > self_.begin_us && time_us < latest) writer_.at((time_us - self_.begin_us) * 1000);
  }

  /// Ends segments: each annotation is one, and so is whatever happens between two outermost ones.
  void pass_annotations(std::int64_t until_us) {
    for (; next_annotation_ < self_.annotations.size(); ++next_annotation_) {
      const torch_annotation& next = self_.annotations[next_annotation_];
      if (next.time_us > until_us) return;
      at(next.time_us);
      if (next.is_begin) {
        if (depth_++ == 0 && is_between_used_) writer_.end_segment(torch_unnamed_segment);
        is_between_used_ = false;
      } else if (depth_ != 0 && --depth_ == 0) {
        writer_.end_segment(next.name);
      }
    }
  }

  /// Ends and begins operations until those of a stack are open; what two stacks have in common stays open.
  void enter(std::uint32_t stack) {
    if (stack == stack_) return;
    path_.clear();
    for (std::uint32_t node = stack; node != 0; node = self_.stacks[node].around) path_.push_back(node);
    std::size_t common = 0;
    while (common < open_.size() && common < path_.size() && open_[common].node == path_[path_.size() - 1 - common]) ++common;
    for (; open_.size() > common; open_.pop_back()) writer_.end_operation(open_.back().operation);
    for (; open_.size() < path_.size();) {
      const std::uint32_t node = path_[path_.size() - 1 - open_.size()];
      open_.push_back({node, writer_.begin_operation(self_.stacks.name(self_.stacks[node].name), {})});
    }
    stack_ = stack;
  }

  struct open_frame {
    std::uint32_t node;
    open_operation operation;
  };

  torch_history& self_;
  trace_writer& writer_;
  struct device_state {
    space_id space;
    std::uint64_t events = 0;
    std::unordered_set<std::uint64_t> awaited;  ///< addresses of freed blocks that streams may still use
  };
  std::map<std::size_t, device_state> devices_;
  bool is_merged_ = false;
  std::vector<merged_event> merged_;
  merged_event request_{};
  bool has_request_ = false;
  std::size_t next_annotation_ = 0;
  bool is_between_used_ = false;  ///< whether anything has happened since the last outermost annotation
  std::size_t depth_ = 0;
  std::uint32_t stack_ = 0;
  std::vector<open_frame> open_;
  std::vector<std::uint32_t> path_;
};

// Protocols 0 and 1, which are rejected, have no marker.
bool is_old_pickle(std::string_view begin) noexcept {
  return begin == "(dp" || begin == "(lp" || begin.starts_with("}q") || begin.starts_with("]q");
}

std::string read_torch_snapshot(std::FILE* file, const std::filesystem::path& path, torch_stacks& stacks,
                                torch_record_sink& sink) {
  std::rewind(file);
  std::array<char, 3> first{};
  const std::string_view begin{first.data(), std::fread(first.data(), 1, first.size(), file)};
  std::rewind(file);
  if (is_old_pickle(begin)) {
    raise_about_file("read", path,
                     "unsupported pickle protocol 0 or 1; expected 2 to 5: rewrite it with "
                     "pickle.dump(snapshot, file, protocol=4)");
  }
  if (!begin.starts_with('\x80')) return read_torch_json(file, path, stacks, sink);
  byte_reader in{file, path};
  return read_torch_pickle(in, stacks, sink);
}

}  // namespace
}  // namespace detail

torch_snapshot_source::torch_snapshot_source(std::FILE* file, std::filesystem::path path, stack_frames frames)
    : file_(file), path_(std::move(path)), history_(std::make_unique<detail::torch_history>(path_, frames)) {
  damage_ = detail::read_torch_snapshot(file_, path_, history_->stacks, *history_);
  history_->finish();
  if (!damage_.empty()) history_->contradictions = 0;  // what is missing may explain them
  if (!damage_.empty() && history_->devices.empty()) detail::raise("cannot read '" + path_.string() + "': " + damage_);
}

torch_snapshot_source::torch_snapshot_source(torch_snapshot_source&&) noexcept = default;
torch_snapshot_source& torch_snapshot_source::operator=(torch_snapshot_source&&) noexcept = default;
torch_snapshot_source::~torch_snapshot_source() = default;

bool torch_snapshot_source::is_pickle(std::FILE* file) {
  std::array<char, 3> first{};
  const std::size_t got = std::fread(first.data(), 1, first.size(), file);
  std::rewind(file);
  const std::string_view begin{first.data(), got};
  return detail::is_old_pickle(begin) || (begin.size() > 1 && begin[0] == '\x80' && begin[1] >= 2 && begin[1] <= 5);
}

extend::capture_info torch_snapshot_source::info() const {
  extend::capture_info made;
  made.library_version = version_string;
  made.begin_unix_ns = history_->begin_us * 1000;
  made.operations = imported_operations;
  return made;
}

std::vector<std::string> torch_snapshot_source::remarks() const { return history_->remarks(!damage_.empty()); }

std::string_view torch_snapshot_source::write_to(extend::trace_writer& writer) {
  detail::torch_history_writer pass{*history_, writer};
  pass.begin();
  (void)detail::read_torch_snapshot(file_, path_, history_->stacks, pass);
  pass.finish();
  return pass.last_segment();
}

}  // namespace memprof::inline MEMPROF_ABI
