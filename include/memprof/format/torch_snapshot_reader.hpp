#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/format/byte_reader.hpp>
#include <memprof/format/torch_snapshot_json.hpp>
#include <memprof/format/torch_snapshot_pickle.hpp>
#include <memprof/format/torch_snapshot_records.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/block_address.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/open_operation.hpp>
#include <memprof/trace/space_id.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof {

/// A segment of PyTorch's caching allocator as a snapshot has it, in bytes: a row of the table `torch_segments` of its trace.
struct torch_segment_fact {
  std::int64_t device = 0;
  std::int64_t address = 0;
  std::int64_t total_size = 0;
  std::int64_t allocated_size = 0;
  std::int64_t active_size = 0;
  std::int64_t requested_size = 0;
  std::int64_t stream = 0;
  std::string type;
  std::string pool;
  std::int64_t is_expandable = 0;

  static constexpr std::string_view table = "torch_segments";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("device", row.device);
    visit("address", row.address);
    visit("total_size", row.total_size);
    visit("allocated_size", row.allocated_size);
    visit("active_size", row.active_size);
    visit("requested_size", row.requested_size);
    visit("stream", row.stream);
    visit("type", row.type);
    visit("pool", row.pool);
    visit("is_expandable", row.is_expandable);
  }
};

/// A setting of the allocator: a row of the table `torch_allocator_settings`.
struct torch_setting_fact {
  std::string name;
  std::string value;

  static constexpr std::string_view table = "torch_allocator_settings";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("name", row.name);
    visit("value", row.value);
  }
};

/// Names that a trace of a snapshot has of its own.
inline constexpr std::string_view torch_before_trace =
    "(before the trace)";                                                 ///< operation of what was live when the history begins
inline constexpr std::string_view torch_before_segment = "BEFORE_TRACE";  ///< segment in which that is allocated
inline constexpr std::string_view torch_unnamed_segment = "TRACE";        ///< segment outside every annotation

/// A PyTorch memory snapshot (`torch.cuda.memory._dump_snapshot`, pickle or JSON) as a source: each device is a memory space
/// `cuda:N`, stacks of frames are operations, `record_function` annotations are segments, and what the allocator reserves is told
/// with stream and pool. Sizes are those that were asked for.
///
/// What was live before the history begins, since it was not recorded or has left the ring buffer, comes first, in a segment and
/// an operation of its own. The file is read twice, and needs memory for what is live, for different stacks, and 16 bytes for
/// each object that a pickle numbers; where several devices have a history, for their events as well, which have to be put in
/// order.
class torch_snapshot_source {
 public:
  /// Reads the file for the first time. It stays the caller's and must be one that can be read again. Raises an error, with file
  /// and place, if it holds no snapshot.
  torch_snapshot_source(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
    scan pass{*this};
    damage_ = read(pass);
    pass.finish();
    if (!damage_.empty() && devices_.empty() && segments_.empty())
      detail::raise("cannot read '" + path_.string() + "': " + damage_);
  }

  /// Whether a file, which stands at its begin and does so afterwards, begins as a pickle does.
  [[nodiscard]] static bool is_pickle(std::FILE* file) {
    const int first = std::fgetc(file);
    const int second = std::fgetc(file);
    std::rewind(file);
    return first == 0x80 && second >= 2 && second <= 5;
  }

  /// What a trace of it says of itself.
  [[nodiscard]] capture_info info() const {
    capture_info made;
    made.library_version = version_string;
    made.begin_unix_ns = begin_us_ * 1000;
    return made;
  }
  /// Why only the beginning could be read, as a sentence without its stop; empty: all was.
  [[nodiscard]] const std::string& damage() const noexcept { return damage_; }
  /// Blocks and bytes that were live before the history begins.
  [[nodiscard]] std::uint64_t blocks_before() const noexcept { return blocks_before_; }
  [[nodiscard]] std::uint64_t bytes_before() const noexcept { return bytes_before_; }
  /// Blocks that the history has live at its end and the segments have not, or not with as many bytes: the snapshot contradicts
  /// itself.
  [[nodiscard]] std::uint64_t contradictions() const noexcept { return contradictions_; }

  /// Tells everything to a `trace_writer`, but for the end. Reads the file for the second time.
  template <class Writer>
  void write_to(Writer& writer) {
    emitter<Writer> pass{*this, writer};
    pass.begin();
    (void)read(pass);
    pass.finish();
  }

 private:
  using action = detail::torch_event::action_type;

  struct live_block {
    std::uint64_t bytes;
    std::uint32_t stack;
    label stream;  ///< an index into `streams_`
    bool is_before;
  };
  struct range {
    std::uint64_t bytes;
    label stream;
  };
  struct device_state {
    std::uint64_t events = 0;
    std::map<std::uint64_t, live_block> before;  ///< blocks that were live before the history
    std::map<std::uint64_t, range> reserved_before;
    std::unordered_map<std::uint64_t, std::uint64_t> live;  ///< during the first pass: bytes by address
    std::map<std::uint64_t, std::uint64_t> reserved;        ///< likewise: bytes of segments that the history has taken
  };

  template <class Sink>
  [[nodiscard]] std::string read(Sink& sink) {
    std::rewind(file_);
    if (!is_pickle(file_)) return detail::read_torch_json(file_, path_, stacks_, sink);
    detail::byte_reader in{file_, path_};
    return detail::read_torch_pickle(in, stacks_, sink);
  }

  [[nodiscard]] device_state& device(std::size_t number) {
    // PyTorch has no more, and a file that names more must not take memory for them.
    constexpr std::size_t most = 254;
    if (number >= most)
      detail::raise("cannot read '" + path_.string() + "': device " + std::to_string(number) + " must be below " +
                    std::to_string(most));
    if (devices_.size() <= number) devices_.resize(number + 1);
    return devices_[number];
  }

  /// The number of a stream and pool: as in a trace, but without one.
  [[nodiscard]] label stream_of(std::int64_t stream, const detail::torch_pool& pool) {
    std::string name = stream == 0 ? "default" : std::to_string(stream);
    name += name_separator;
    if (!(pool == detail::torch_pool{})) name += std::to_string(pool.first) + ":" + std::to_string(pool.second);
    return streams_.intern(name);
  }

  /// The first pass: what was there before the history.
  struct scan {
    torch_snapshot_source& self;

    [[nodiscard]] std::uint64_t event_count(std::size_t number) { return self.device(number).events; }
    void setting(std::string_view name, const std::string& value) { self.settings_.push_back({std::string{name}, value}); }
    void annotation(const detail::torch_annotation& made) {
      self.annotations_.push_back(made);
      note_time(made.time_us);
    }
    void segment(const detail::torch_segment& made) {
      if (made.device < 0)
        detail::raise("cannot read '" + self.path_.string() + "': a segment is of device " + std::to_string(made.device));
      (void)self.device(static_cast<std::size_t>(made.device));
      self.segments_.push_back(made);
    }
    void event(std::size_t number, const detail::torch_event& happened) {
      device_state& on = self.device(number);
      ++on.events;
      note_time(happened.time_us);
      switch (happened.action) {
        case action::alloc: on.live[happened.address] = happened.bytes; break;
        case action::free_completed:
          // The history has lost its allocation: it was live before. After that the address may come again.
          if (on.live.erase(happened.address) == 0)
            on.before.try_emplace(happened.address,
                                  live_block{happened.bytes, 0, self.stream_of(happened.stream, happened.pool), true});
          break;
        case action::segment_alloc: on.reserved[happened.address] = happened.bytes; break;
        case action::segment_free:
          if (on.reserved.erase(happened.address) == 0)
            on.reserved_before.try_emplace(happened.address,
                                           range{happened.bytes, self.stream_of(happened.stream, happened.pool)});
          break;
        default: break;
      }
    }

    /// Compares what the history has live with the segments: what only they have was live before.
    void finish() {
      for (const detail::torch_segment& segment : self.segments_) {
        device_state& on = self.device(static_cast<std::size_t>(segment.device));
        const label stream = self.stream_of(segment.stream, segment.pool);
        add_segment(on, segment, stream);
        for (const detail::torch_block& block : segment.blocks) {
          const auto found = on.live.find(block.address);
          if (found == on.live.end()) {
            on.before.try_emplace(block.address, live_block{block.bytes, block.stack, stream, true});
          } else {
            if (found->second != block.bytes) ++self.contradictions_;
            on.live.erase(found);
          }
        }
      }
      for (device_state& on : self.devices_) {
        if (!self.segments_.empty()) self.contradictions_ += on.live.size();
        on.live = {};
        on.reserved = {};
        for (const auto& [address, block] : on.before) {
          ++self.blocks_before_;
          self.bytes_before_ += block.bytes;
        }
      }
      if (self.begin_us_ == std::numeric_limits<std::int64_t>::max()) self.begin_us_ = 0;
    }

   private:
    void note_time(std::int64_t time_us) {
      constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max() / 1000;
      if (time_us > 0 && time_us < latest) self.begin_us_ = std::min(self.begin_us_, time_us);
    }
    /// An expandable segment may consist of parts that the history has seen mapped and others.
    static void add_segment(device_state& on, const detail::torch_segment& segment, label stream) {
      std::uint64_t at = segment.address;
      const std::uint64_t end = segment.address + segment.total_size;
      for (auto next = on.reserved.lower_bound(at); next != on.reserved.end() && next->first < end; ++next) {
        if (next->first > at) on.reserved_before.try_emplace(at, range{next->first - at, stream});
        at = next->first + next->second;
      }
      if (at < end) on.reserved_before.try_emplace(at, range{end - at, stream});
    }
  };

  /// The second pass: tells the writer.
  template <class Writer>
  class emitter {
   public:
    emitter(torch_snapshot_source& from, Writer& to) : self_(from), writer_(to) {}

    [[nodiscard]] std::uint64_t event_count(std::size_t number) const { return counts_[number]; }
    void setting(std::string_view, const std::string&) {}
    void annotation(const detail::torch_annotation&) {}
    void segment(const detail::torch_segment&) {}
    void event(std::size_t number, const detail::torch_event& happened) {
      ++counts_[number];
      if (is_merged_) {
        merged_.push_back({number, happened});
      } else {
        write(number, happened);
      }
    }

    void begin() {
      std::size_t with_history = 0;
      counts_.resize(self_.devices_.size());
      for (std::size_t number = 0; number < self_.devices_.size(); ++number) {
        spaces_.push_back(writer_.space("cuda:" + std::to_string(number)));
        if (self_.devices_[number].events != 0) ++with_history;
      }
      is_merged_ = with_history > 1;
      writer_.add_facts(to_table(self_.settings_facts()));
      writer_.add_facts(to_table(self_.segment_facts()));
      std::stable_sort(self_.annotations_.begin(), self_.annotations_.end(),
                       [](const auto& left, const auto& right) { return left.time_us < right.time_us; });
      writer_.on_thread(1, "PyTorch");
      for (std::size_t number = 0; number < self_.devices_.size(); ++number) {
        for (const auto& [address, range] : self_.devices_[number].reserved_before)
          put(event_kind::reserve, number, address, range.bytes, range.stream);
        if (self_.devices_[number].before.empty()) continue;
        const open_operation before = writer_.begin_operation(torch_before_trace, {});
        for (const auto& [address, block] : self_.devices_[number].before) {
          enter(block.stack);
          put(event_kind::allocate_on_stream, number, address, block.bytes, block.stream);
        }
        enter(0);
        writer_.end_operation(before);
      }
      if (self_.blocks_before_ != 0) writer_.end_segment(torch_before_segment);
    }

    void finish() {
      std::stable_sort(merged_.begin(), merged_.end(),
                       [](const merged_event& left, const merged_event& right) { return left.of.time_us < right.of.time_us; });
      for (const merged_event& each : merged_) write(each.device, each.of);
      enter(0);
      pass_annotations(std::numeric_limits<std::int64_t>::max());
    }

   private:
    struct merged_event {
      std::size_t device;
      detail::torch_event of;
    };

    void put(event_kind kind, std::size_t number, std::uint64_t address, std::uint64_t bytes, label stream,
             std::uint16_t tag = 0) {
      const label name = stream == 0 ? 0 : writer_.label_of(self_.streams_.text(stream));
      writer_.put_event({0, address, bytes, name, kind, spaces_[number].value, tag});
    }

    void write(std::size_t number, const detail::torch_event& happened) {
      pass_annotations(happened.time_us);
      at(happened.time_us);
      const label stream = self_.stream_of(happened.stream, happened.pool);
      switch (happened.action) {
        case action::alloc:
          enter(happened.stack);
          put(event_kind::allocate_on_stream, number, happened.address, happened.bytes, stream, happened.category.tag());
          if (happened.metadata != 0) writer_.annotate(block_address{happened.address}, {self_.stacks_.name(happened.metadata)});
          break;
        case action::free_completed:
          enter(happened.stack);
          put(event_kind::deallocate_on_stream, number, happened.address, happened.bytes, stream);
          break;
        case action::segment_alloc: put(event_kind::reserve, number, happened.address, happened.bytes, stream); break;
        case action::segment_free: put(event_kind::release, number, happened.address, happened.bytes, stream); break;
        case action::oom:
          enter(happened.stack);
          put(event_kind::out_of_memory, number, happened.address, happened.bytes, 0);
          break;
        default: break;
      }
    }

    void at(std::int64_t time_us) {
      constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max() / 1000;
      if (time_us > self_.begin_us_ && time_us < latest) writer_.at((time_us - self_.begin_us_) * 1000);
    }

    /// Ends segments: an annotation is one, and what lies between two of the outermost.
    void pass_annotations(std::int64_t until_us) {
      for (; next_annotation_ < self_.annotations_.size(); ++next_annotation_) {
        const detail::torch_annotation& next = self_.annotations_[next_annotation_];
        if (next.time_us > until_us) return;
        at(next.time_us);
        if (next.is_begin) {
          if (depth_++ == 0) writer_.end_segment(torch_unnamed_segment);
        } else if (depth_ != 0 && --depth_ == 0) {
          writer_.end_segment(next.name);
        }
      }
    }

    /// Ends and begins operations until those of a stack are open: what two stacks have in common stays open.
    void enter(std::uint32_t stack) {
      if (stack == stack_) return;
      path_.clear();
      for (std::uint32_t node = stack; node != 0; node = self_.stacks_[node].around) path_.push_back(node);
      std::size_t common = 0;
      while (common < open_.size() && common < path_.size() && open_[common].node == path_[path_.size() - 1 - common]) ++common;
      for (; open_.size() > common; open_.pop_back()) writer_.end_operation(open_.back().operation);
      for (; open_.size() < path_.size();) {
        const std::uint32_t node = path_[path_.size() - 1 - open_.size()];
        open_.push_back({node, writer_.begin_operation(self_.stacks_.name(self_.stacks_[node].name), {})});
      }
      stack_ = stack;
    }

    struct open_frame {
      std::uint32_t node;
      typename Writer::open_operation_type operation;
    };

    torch_snapshot_source& self_;
    Writer& writer_;
    std::vector<space_id> spaces_;
    std::vector<std::uint64_t> counts_;
    bool is_merged_ = false;
    std::vector<merged_event> merged_;
    std::size_t next_annotation_ = 0;
    std::size_t depth_ = 0;
    std::uint32_t stack_ = 0;
    std::vector<open_frame> open_;
    std::vector<std::uint32_t> path_;
  };

  [[nodiscard]] const std::vector<torch_setting_fact>& settings_facts() const noexcept { return settings_; }
  [[nodiscard]] std::vector<torch_segment_fact> segment_facts() const {
    std::vector<torch_segment_fact> rows;
    for (const detail::torch_segment& segment : segments_) {
      rows.push_back({segment.device, static_cast<std::int64_t>(segment.address), static_cast<std::int64_t>(segment.total_size),
                      segment.allocated_size, segment.active_size, segment.requested_size, segment.stream, segment.type,
                      std::to_string(segment.pool.first) + ":" + std::to_string(segment.pool.second),
                      segment.is_expandable ? 1 : 0});
    }
    return rows;
  }

  std::FILE* file_;
  std::filesystem::path path_;
  std::string damage_;
  detail::torch_stacks stacks_;
  label_table streams_;
  std::vector<device_state> devices_;
  std::vector<detail::torch_segment> segments_;
  std::vector<detail::torch_annotation> annotations_;
  std::vector<torch_setting_fact> settings_;
  std::int64_t begin_us_ = std::numeric_limits<std::int64_t>::max();
  std::uint64_t blocks_before_ = 0;
  std::uint64_t bytes_before_ = 0;
  std::uint64_t contradictions_ = 0;
};

}  // namespace memprof
