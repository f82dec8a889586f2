#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/json_value.hpp>
#include <memprof/toolkit/format/foreign_json.hpp>
#include <memprof/toolkit/format/json_value_text.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_fields.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_json.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// Extracts the records of a snapshot from its JSON as a parser delivers values, and hands each on when its object ends. What a
/// record does not need is kept no longer than the parser's own token.
class torch_json_handler {
 public:
  torch_json_handler(const std::filesystem::path& path, torch_stacks& stacks, torch_record_sink& sink)
      : path_(path), stacks_(stacks), sink_(sink) {}

  // --- called by a parser -------------------------------------------------------------------------------------------

  void name(std::string_view key) {
    key_ = key;
    if (within_.empty()) return;
    switch (within_.back()) {
      case part::snapshot: begin_section(); break;
      case part::event: note(event_.seen, torch_event::keys); break;
      case part::segment: note(segment_.seen, torch_segment::keys); break;
      case part::block: note(block_.seen, torch_block_fields::keys); break;
      default: break;
    }
    if (within_.back() == part::setting) setting_.key(key);
  }
  void open(json_kind kind) {
    if (within_.size() == deepest) raise("cannot read '" + path_.string() + "': nested too deeply for a snapshot");
    const part next = part_of(kind);
    begin(next, kind);
    within_.push_back(next);
  }
  void close() {
    const part ended = within_.back();
    within_.pop_back();
    end(ended);
  }
  void take(const json_value& value) {
    if (within_.empty()) return;
    switch (within_.back()) {
      case part::event:
      case part::segment:
      case part::block:
        if (value.kind != json_kind::null || !torch_may_be_null(key_)) set_field(field_of(value));
        return;
      case part::device:
      case part::segments:
      case part::blocks:
      case part::traces: return refuse_item();
      case part::frame: return set_frame(field_of(value));
      case part::annotation: return set_annotation(field_of(value));
      case part::pool: return add_to_pool(field_of(value));
      case part::overflowed:
        if (value.truth) sink_.overflowed(device_);
        ++device_;
        return;
      case part::snapshot:
        if (is_list_section()) raise_about("'" + key_ + "'", "must be a list");
        return;
      case part::settings:
        return sink_.setting(key_, value.kind == json_kind::string ? std::string{value.text} : json_text_of(value));
      case part::setting: return setting_.value(json_text_of(value));
      default: return;
    }
  }

  /// Checks a document that was read to its end.
  void finish() const {
    if (!is_snapshot_)
      raise("cannot read '" + path_.string() + "': a snapshot has 'segments' and 'device_traces', and this has neither");
  }

 private:
  /// What an array or object represents.
  enum class part : std::uint8_t {
    snapshot,
    traces,
    device,
    event,
    segments,
    segment,
    blocks,
    block,
    frames,
    frame,
    pool,
    annotations,
    annotation,
    settings,
    setting,
    overflowed,
    other,
  };

  static constexpr std::size_t deepest = 64;

  [[nodiscard]] part part_of(json_kind kind) const {
    const bool is_object = kind == json_kind::object;
    if (within_.empty()) return is_object ? part::snapshot : part::other;
    switch (within_.back()) {
      case part::snapshot:
        if (is_object) return key_ == "allocator_settings" ? part::settings : part::other;
        return key_ == "device_traces" || key_ == "host_traces" ? part::traces
               : key_ == "segments" || key_ == "host_segments"  ? part::segments
               : key_ == "external_annotations"                 ? part::annotations
               : key_ == "trace_alloc_overflowed"               ? part::overflowed
                                                                : part::other;
      case part::traces:
        // The history of the host is one list of events, or has one for each allocator.
        return !is_object ? part::device : is_pinned() ? part::event : part::other;
      case part::device: return is_object ? part::event : part::other;
      case part::segments: return is_object ? part::segment : part::other;
      case part::blocks: return is_object ? part::block : part::other;
      case part::frames: return is_object ? part::frame : part::other;
      case part::annotations: return is_object ? part::annotation : part::other;
      case part::settings:
      case part::setting: return part::setting;
      case part::event:
      case part::block:
        if (is_object) return part::other;
        return key_ == "frames" ? part::frames : key_ == "pool_id" && within_.back() == part::event ? part::pool : part::other;
      case part::segment:
        if (is_object) return part::other;
        return key_ == "blocks" ? part::blocks : key_ == "segment_pool_id" ? part::pool : part::other;
      default: return part::other;
    }
  }

  void begin(part next, json_kind kind) {
    switch (next) {
      case part::event: event_ = {}; break;
      case part::blocks: blocks_ = 0; break;
      case part::segment:
        segment_ = {};
        has_address_ = false;
        next_address_ = 0;
        without_address_ = 0;
        break;
      case part::block: block_ = {}; break;
      case part::frames: labels_.clear(); break;
      case part::frame:
        frame_name_.clear();
        frame_file_.clear();
        frame_line_ = 0;
        break;
      case part::annotation: annotation_ = {}; break;
      case part::pool: pool_.clear(); break;
      case part::settings: break;
      case part::setting:
        if (within_.back() == part::settings) setting_name_ = key_;
        setting_.open(kind);
        break;
      case part::other: refuse_container(); break;
      default: break;
    }
  }

  void end(part ended) {
    switch (ended) {
      case part::device:
        if (!is_pinned()) ++device_;
        break;
      case part::event: end_event(); break;
      case part::segment: end_segment(); break;
      case part::block: add_block(); break;
      case part::frame: labels_.push_back(stacks_.frame(frame_name_, frame_file_, frame_line_)); break;
      case part::frames: end_frames(); break;
      case part::annotation:
        ++annotations_;
        sink_.annotation(annotation_);
        break;
      case part::pool: end_pool(); break;
      case part::setting:
        setting_.close();
        if (within_.back() == part::settings) sink_.setting(setting_name_, setting_.take());
        break;
      default: break;
    }
  }

  /// A top-level key of the snapshot.
  void begin_section() {
    if (!is_torch_section(key_)) sink_.unknown_section(key_);
    if (is_list_section()) {
      if (!sections_.insert(key_).second) raise_about("'" + key_ + "'", "occurs twice");
      is_snapshot_ = is_snapshot_ || !key_.starts_with("host_");
    }
    device_ = key_.starts_with("host_") ? torch_pinned : 0;
    segments_ = 0;
  }

  [[nodiscard]] bool is_list_section() const noexcept {
    return key_ == "segments" || key_ == "device_traces" || key_ == "host_segments" || key_ == "host_traces";
  }
  [[nodiscard]] bool is_pinned() const noexcept { return device_ == torch_pinned; }

  // --- fields -------------------------------------------------------------------------------------------------------

  [[nodiscard]] torch_field field_of(const json_value& value) const {
    torch_field field{key_, {}, {}, {}};
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value.kind == json_kind::string) field.text = value.text;
    if (value.kind == json_kind::boolean) field.truth = value.truth;
    if (value.kind == json_kind::integer) field.integer = value.integer;
    if (value.kind == json_kind::natural && value.natural <= most) field.integer = static_cast<std::int64_t>(value.natural);
    return field;
  }
  void note(std::uint32_t& seen, std::span<const std::string_view> keys) {
    if (!note_key(seen, keys, key_)) raise_about(here(), "'" + key_ + "' " + torch_only_once);
  }
  /// A value of the innermost record, other than a list.
  void set_field(const torch_field& field) {
    torch_expectation fault = nullptr;
    if (key_ == "frames" && within_.back() == part::segment) return;  // not needed
    if (key_ == "frames" || key_ == "blocks") {
      fault = torch_list;
    } else if (key_ == "pool_id" || key_ == "segment_pool_id") {
      fault = torch_two_numbers;
    } else {
      fault = within_.back() == part::event     ? set(event_, field, stacks_)
              : within_.back() == part::segment ? set(segment_, field)
                                                : block_.set(field);
    }
    if (fault != nullptr) raise_about(here(), "'" + key_ + "' " + fault);
    if (within_.back() != part::segment || key_ != "address") return;
    has_address_ = true;
    if (next_address_ == 0) next_address_ = segment_.address;
  }
  /// The innermost event, segment or block, or whatever is in its place.
  [[nodiscard]] std::string here() const {
    std::string segment = (is_pinned() ? "host segment " : "segment ") + std::to_string(segments_);
    switch (within_.back()) {
      case part::event:
      case part::device: return "event " + std::to_string(sink_.event_count(device_)) + " of " + torch_device_name(device_);
      case part::block:
      case part::blocks: return "block " + std::to_string(blocks_) + " of " + segment;
      case part::traces: return torch_device_name(device_);
      default: return segment;
    }
  }
  [[noreturn]] void refuse_item() const {
    raise_about(here(), within_.back() == part::traces ? "expected a list of events" : "expected an object");
  }
  void set_frame(const torch_field& field) {
    if (key_ == "name") frame_name_ = field.text.value_or("");
    if (key_ == "filename") frame_file_ = field.text.value_or("");
    if (key_ == "line") frame_line_ = field.integer.value_or(0);
  }
  void set_annotation(const torch_field& field) {
    if (key_ == "name") annotation_.name = field.text.value_or("");
    if (key_ == "stage") annotation_.is_begin = field.text == "START";
    if (key_ != "time_us") return;
    const torch_expectation fault = read_time_to(annotation_.time_us, field);
    if (fault != nullptr) raise_about("annotation " + std::to_string(annotations_), std::string{"'time_us' "} + fault);
  }
  /// An array or object where something else was expected.
  void refuse_container() {
    if (within_.empty()) return;
    switch (within_.back()) {
      case part::event:
      case part::segment:
      case part::block: return set_field({key_, {}, {}, {}});
      case part::device:
      case part::segments:
      case part::blocks:
      case part::traces: return refuse_item();
      case part::snapshot:
        if (is_list_section()) raise_about("'" + key_ + "'", "must be a list");
        return;
      default: return;
    }
  }

  // --- parts of records ---------------------------------------------------------------------------------------------

  void end_event() {
    if (const torch_expectation lack = lack_of(event_); lack != nullptr) raise_about(here(), lack);
    sink_.event(device_, event_);
  }
  void add_to_pool(const torch_field& field) {
    if (!field.integer) pool_.assign(3, 0);  // no pool
    if (pool_.size() < 3) pool_.push_back(field.integer.value_or(0));
  }
  void end_pool() {
    if (pool_.size() != 2) raise_about(here(), "'" + key_ + "' " + torch_two_numbers);
    (within_.back() == part::event ? event_.pool : segment_.pool) = torch_pool{pool_[0], pool_[1]};
  }
  /// Frames are listed innermost first, but stacks grow inwards.
  void end_frames() {
    std::uint32_t stack = 0;
    for (std::size_t index = labels_.size(); index-- > 0;) stack = stacks_.within(stack, labels_[index]);
    (within_.back() == part::event ? event_.stack : block_.block.stack) = stack;
  }
  /// Old blocks have no address: they follow each other, and may precede the segment's address.
  void add_block() {
    if (const torch_expectation lack = block_.lack(); lack != nullptr) raise_about(here(), lack);
    ++blocks_;
    const std::size_t known = segment_.blocks.size();
    if (block_.has_address) has_address_ = true;
    block_.add_to(segment_, next_address_);
    if (!has_address_) without_address_ += segment_.blocks.size() - known;
  }
  void end_segment() {
    for (std::size_t index = 0; index < without_address_; ++index) segment_.blocks[index].address += segment_.address;
    ++segments_;
    if (is_pinned()) segment_.device = std::int64_t{torch_pinned};
    sink_.segment(segment_);
  }

  [[noreturn]] void raise_about(const std::string& what, const std::string& fault) const {
    raise("cannot read '" + path_.string() + "': " + what + ": " + fault);
  }

  std::filesystem::path path_;
  torch_stacks& stacks_;
  torch_record_sink& sink_;
  std::vector<part> within_;  // all open arrays and objects
  std::string key_;           // the latest one
  bool is_snapshot_ = false;
  std::set<std::string> sections_;  // the lists of the snapshot so far
  std::size_t device_ = 0;
  std::uint64_t segments_ = 0;
  std::uint64_t blocks_ = 0;  // of the segment
  std::uint64_t annotations_ = 0;
  torch_event event_;  // these are being read
  torch_segment segment_;
  bool has_address_ = false;
  std::uint64_t next_address_ = 0;
  std::size_t without_address_ = 0;  // its blocks whose addresses are relative to its start
  torch_block_fields block_;
  torch_annotation annotation_;
  std::vector<std::int64_t> pool_;
  std::vector<label> labels_;  // names of frames
  std::string frame_name_;
  std::string frame_file_;
  std::int64_t frame_line_ = 0;
  std::string setting_name_;
  json_value_text setting_;
};

}  // namespace

std::string read_torch_json(std::FILE* file, const std::filesystem::path& path, torch_stacks& stacks, torch_record_sink& sink) {
  torch_json_handler handler{path, stacks, sink};
  std::string damage = read_foreign_json(file, path, handler);
  if (damage.empty()) handler.finish();
  return damage;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
