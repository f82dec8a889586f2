#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/gzip.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/pprof/pprof.hpp>
#include <memprof/toolkit/format/protobuf_writer.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/version.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// Field numbers of https://github.com/google/pprof/blob/main/proto/profile.proto.
class pprof_writer {
 public:
  pprof_writer(const stack_table& table, const std::vector<pprof_label>& labels) : table_(table), labels_(labels) {
    (void)string_id("");
  }

  [[nodiscard]] std::string encode() {
    const auto all_objects = [](const stack_row& row) { return row.total_blocks; };
    const auto all_bytes = [](const stack_row& row) { return row.total_bytes; };
    const auto end_objects = [](const stack_row& row) { return row.end_blocks; };
    const auto end_bytes = [](const stack_row& row) { return row.end_bytes; };
    const auto peak_objects = [](const stack_row& row) { return row.peak_blocks; };
    const auto peak_bytes = [](const stack_row& row) { return row.peak_bytes; };
    // Go's four types, and two for the peak. A profile does not know how many blocks an operation has left.
    add_type("alloc_objects", "count", all_objects);
    add_type("alloc_space", "bytes", all_bytes);
    if (table_.has_lifetimes) add_type("inuse_objects", "count", end_objects);
    add_type("inuse_space", "bytes", end_bytes);
    add_type("peak_objects", "count", peak_objects);
    add_type("peak_space", "bytes", peak_bytes);
    for (const stack_row& row : table_.rows) add_sample(row);
    whole_.message(3, protobuf_message{}.integer(1, mapping).integer(5, string_id(table_.process.command_line)).integer(7, yes));
    add_places();
    const std::uint64_t bytes_name = string_id("bytes");
    const std::uint64_t period_name = string_id("space");
    whole_.message(11, protobuf_message{}.integer(1, period_name).integer(2, bytes_name)).integer(12, period);
    whole_.integer(9, table_.begin_unix_ns).integer(10, table_.duration_ns);
    whole_.integer(13, string_id(std::string{"memprof "} + version_string + "; each memory space at its own peak"));
    whole_.integer(14, string_id("peak_space"));
    for (const std::string& text : strings_) whole_.text(6, text);
    return whole_.bytes();
  }

 private:
  using column = std::int64_t (*)(const stack_row&);

  static constexpr std::uint64_t mapping = 1;  ///< the id of the only one
  static constexpr std::uint64_t yes = 1;
  static constexpr std::uint64_t period = 1;  ///< every byte is sampled

  [[nodiscard]] std::uint64_t string_id(std::string_view text) {
    std::string sound;
    append_utf8(sound, text);
    const auto [found, is_new] = ids_.try_emplace(sound, strings_.size());
    if (is_new) strings_.push_back(sound);
    return found->second;
  }
  /// An operation's id is its index; the spaces' ids follow.
  [[nodiscard]] std::uint64_t id_of_space(std::uint32_t space) const noexcept { return table_.operations.size() + space; }

  void add_type(std::string_view type, std::string_view unit, column of) {
    const std::uint64_t type_name = string_id(type);
    whole_.message(1, protobuf_message{}.integer(1, type_name).integer(2, string_id(unit)));
    columns_.push_back(of);
  }
  void add_sample(const stack_row& row) {
    std::vector<std::uint64_t> stack;  // innermost first
    for (std::uint32_t node = row.operation; node != 0; node = table_.operations[node].parent) stack.push_back(node);
    stack.push_back(id_of_space(row.space));
    std::vector<std::int64_t> values;
    for (const column of : columns_) values.push_back(of(row));
    protobuf_message sample;
    const stack_table::space_row& space = table_.spaces[row.space];
    sample.packed(1, stack).packed(2, values).message(3, label("space", space.name));
    if (table_.process.rank >= 0) sample.message(3, label("rank", std::to_string(table_.process.rank)));
    if (!space.peak_segment.empty()) sample.message(3, label("segment", space.peak_segment));
    if (space.peak_step >= 0) sample.message(3, label("step", std::to_string(space.peak_step + 1)));
    for (const pprof_label& each : labels_) sample.message(3, label(each.key, each.value));
    if (table_.has_categories) sample.message(3, label("category", to_string(row.category)));
    whole_.message(2, sample);
  }
  [[nodiscard]] protobuf_message label(std::string_view key, std::string_view value) {
    const std::uint64_t key_name = string_id(key);
    return protobuf_message{}.integer(1, key_name).integer(2, string_id(value));
  }
  void add_places() {
    for (std::size_t node = 1; node < table_.operations.size(); ++node) add_place(node, table_.operations[node].name);
    for (std::uint32_t space = 0; space < table_.spaces.size(); ++space) add_place(id_of_space(space), table_.spaces[space].name);
  }
  void add_place(std::uint64_t place, const std::string& name) {
    whole_.message(4, protobuf_message{}.integer(1, place).integer(2, mapping).message(4, protobuf_message{}.integer(1, place)));
    const std::uint64_t text = string_id(name.empty() ? "(unnamed)" : name);
    whole_.message(5, protobuf_message{}.integer(1, place).integer(2, text).integer(3, text));
  }

  const stack_table& table_;
  const std::vector<pprof_label>& labels_;
  protobuf_message whole_;
  std::vector<column> columns_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, std::uint64_t> ids_;
};

}  // namespace

}  // namespace detail

void write_pprof(const stack_table& table, byte_sink_view out, const pprof_options& options) {
  const std::string encoded = detail::pprof_writer{table, options.labels}.encode();
  out.write(options.gzip == nullptr ? detail::gzip_stored(encoded) : options.gzip(encoded));
}

}  // namespace memprof::inline MEMPROF_ABI
