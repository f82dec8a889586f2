#include <memprof/config.hpp>
#include <memprof/profile/build.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/page/page_detail.hpp>
#include <memprof/toolkit/page/page_frame.hpp>
#include <memprof/toolkit/page/page_owners.hpp>
#include <memprof/toolkit/page/page_stacks.hpp>
#include <memprof/toolkit/page/run_frames.hpp>
#include <memprof/toolkit/page/run_survey.hpp>
#include <memprof/toolkit/page/stack_tree.hpp>
#include <memprof/toolkit/page/step_survey.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/varint.hpp>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// The tables of a page: the bytes of their columns, and the position of each column. viewer/DATA.md describes the encoding.
class page_columns {
 public:
  /// Begins a table whose columns have `rows` rows. `space` is -1 if the table is not about a space.
  void begin_table(std::string_view name, std::size_t frame, std::int64_t space, std::size_t rows) {
    tables_.push_back({{"name", name}, {"frame", frame}, {"space", space}, {"rows", rows}, {"columns", json::array()}});
    rows_ = rows;
  }

  /// A column of small non-negative numbers; `value(row)` is called for each row in order.
  template <class Value>
  void plain(std::string_view name, Value&& value) {
    const std::size_t begin = bytes_.size();
    for (std::size_t row = 0; row < rows_; ++row) put(static_cast<std::uint64_t>(value(row)));
    end_column(name, "plain", begin);
  }

  /// A column of numbers that grow or repeat: differences are stored.
  template <class Value>
  void delta(std::string_view name, Value&& value) {
    const std::size_t begin = bytes_.size();
    std::uint64_t last = 0;  // unsigned: the difference of two extremes wraps, and wraps back in the reader
    for (std::size_t row = 0; row < rows_; ++row) {
      const auto next = static_cast<std::uint64_t>(value(row));
      put(zigzag(static_cast<std::int64_t>(next - last)));
      last = next;
    }
    end_column(name, "delta", begin);
  }

  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] const nlohmann::ordered_json& tables() const noexcept { return tables_; }

 private:
  using json = nlohmann::ordered_json;

  void put(std::uint64_t value) {
    unsigned char encoded[max_varint_bytes];
    const unsigned char* const end = put_varint(encoded, value);
    bytes_.append(reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(end - encoded));
  }
  void end_column(std::string_view name, std::string_view encoding, std::size_t begin) {
    tables_.back()["columns"].push_back(
        {{"name", name}, {"encoding", encoding}, {"begin", begin}, {"bytes", bytes_.size() - begin}});
  }

  std::string bytes_;
  json tables_ = json::array();
  std::size_t rows_ = 0;
};

/// The distinct texts of a page.
class page_strings {
 public:
  [[nodiscard]] std::size_t index_of(std::string_view text) {
    const auto [known, is_new] = indices_.try_emplace(std::string{text}, texts_.size());
    if (is_new) texts_.push_back(known->first);
    return known->second;
  }
  [[nodiscard]] const std::vector<std::string>& texts() const noexcept { return texts_; }

 private:
  std::vector<std::string> texts_{""};
  std::unordered_map<std::string, std::size_t> indices_{{"", 0}};
};

/// Name, shape and dtype of an annotation, as indices into `page_strings`.
[[nodiscard]] std::array<std::size_t, 3> annotation_strings(std::string_view text, page_strings& strings) {
  std::array<std::size_t, 3> parts{};
  for (std::size_t& part : parts) {
    const std::size_t end = std::min(text.find(name_separator), text.size());
    part = strings.index_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

/// Encodes a `page_detail`.
class page_detail_writer {
 public:
  explicit page_detail_writer(const page_detail& source)
      : source_(source), names_(source.survey.fold().names()), clock_(source.survey.clock()) {}

  /// Writes the document, and the columns to `columns`. Frames except the first are left out if they would make the columns
  /// longer than `max_bytes`.
  [[nodiscard]] nlohmann::ordered_json write(page_columns& columns, std::size_t max_bytes) {
    json frames = json::array();
    choose_patterns();
    add_steps(columns);
    add_segments(columns);
    add_stacks(columns);
    for (const page_frame& frame : source_.frames) {
      if (!frames.empty() && columns.bytes().size() >= max_bytes) break;
      add_frame(columns, frame, frames.size());
      frames.push_back(to_json(frame));
    }
    return {{"events", source_.survey.event_count()},
            {"owners", owners()},
            {"threads", threads()},
            {"strings", strings_.texts()},
            {"regions", regions()},
            {"patterns", patterns()},
            {"frames", frames},
            {"stacks", stacks()},
            {"tables", columns.tables()}};
  }

 private:
  using json = nlohmann::ordered_json;
  static constexpr std::size_t max_patterns = 64;

  [[nodiscard]] std::int64_t to_ns(const moment& when) const noexcept { return clock_.to_ns(when.stamp); }

  // --- lists --------------------------------------------------------------------------------------------------------

  [[nodiscard]] json owners() const {
    json rows = json::array();
    for (const page_owner& owner : source_.owners.owners()) {
      rows.push_back({{"operation", owner.operation}, {"category", category_names[owner.category]}});
    }
    return rows;
  }

  [[nodiscard]] json threads() const {
    json rows = json::array();
    for (const page_thread& thread : source_.found.threads()) {
      rows.push_back({{"name", names_.text(thread.name)}, {"id", thread.system_id}});
    }
    return rows;
  }

  [[nodiscard]] json regions() const {
    json rows = json::array();
    for (const std::uint8_t id : source_.spaces) {
      json of_space = json::array();
      for (const address_regions::region& region : source_.survey.regions(id).regions()) {
        std::array<char, 24> address{};
        std::snprintf(address.data(), address.size(), "0x%" PRIx64, region.begin);
        of_space.push_back({{"offset", region.offset}, {"bytes", region.end - region.begin}, {"address", address.data()}});
      }
      rows.push_back(std::move(of_space));
    }
    return rows;
  }

  [[nodiscard]] json to_json(const page_frame& frame) const {
    json blocks = json::array();
    for (const page_frame::in_space& space : frame.spaces) blocks.push_back(space.blocks.count());
    return {{"begin_event", frame.begin.event}, {"end_event", frame.end.event}, {"begin_ns", to_ns(frame.begin)},
            {"end_ns", to_ns(frame.end)},       {"step", frame.step},           {"invocations", frame.invocations.count()},
            {"blocks", std::move(blocks)}};
  }

  // --- steps --------------------------------------------------------------------------------------------------------

  /// Chooses the most frequent patterns, and their numbers in the table of steps.
  void choose_patterns() {
    const std::vector<step_pattern>& all = source_.survey.steps().patterns();
    for (std::size_t index = 0; index < all.size(); ++index) patterns_.push_back(index);
    std::stable_sort(patterns_.begin(), patterns_.end(),
                     [&](std::size_t left, std::size_t right) { return all[left].steps > all[right].steps; });
    if (source_.survey.steps().rows().empty()) patterns_.clear();
    if (patterns_.size() > max_patterns) patterns_.resize(max_patterns);
    number_of_pattern_.resize(all.size() + 1);
    for (std::size_t index = 0; index < patterns_.size(); ++index) number_of_pattern_[patterns_[index] + 1] = index + 1;
  }

  [[nodiscard]] json patterns() const {
    json rows = json::array();
    for (const std::size_t index : patterns_) {
      const step_pattern& pattern = source_.survey.steps().patterns()[index];
      const auto steps = static_cast<double>(pattern.steps);
      json segments = json::array();
      for (const step_pattern::part& part : pattern.parts) {
        json usage = json::array();
        for (const std::uint8_t id : source_.spaces) {
          const auto found =
              std::find_if(part.usage.begin(), part.usage.end(), [&](const auto& each) { return each.space == id; });
          const page_segment_usage bytes = found == part.usage.end() ? page_segment_usage{} : *found;
          usage.push_back({{"segment_peak", bytes.segment_peak},
                           {"allocations", bytes.allocations},
                           {"deallocations", bytes.deallocations},
                           {"segment_change", bytes.segment_change}});
        }
        segments.push_back({{"name", part.name == 0 ? open_segment_name : names_.text(part.name)},
                            {"begin", part.begin / steps},
                            {"end", part.end / steps},
                            {"usage", std::move(usage)}});
      }
      rows.push_back({{"steps", pattern.steps}, {"segments", std::move(segments)}});
    }
    return rows;
  }

  void add_steps(page_columns& columns) const {
    const step_survey& steps = source_.survey.steps();
    const std::vector<step_survey::row>& rows = steps.rows();
    columns.begin_table("steps", 0, -1, rows.size());
    columns.delta("begin_event", [&](std::size_t row) { return rows[row].begin.event; });
    columns.delta("begin_ns", [&](std::size_t row) { return to_ns(rows[row].begin); });
    columns.delta("end_event", [&](std::size_t row) { return rows[row].end.event; });
    columns.delta("end_ns", [&](std::size_t row) { return to_ns(rows[row].end); });
    columns.plain("pattern", [&](std::size_t row) { return number_of_pattern_[rows[row].pattern]; });
    columns.plain("count", [&](std::size_t row) { return rows[row].steps; });
    columns.delta("segment", [&](std::size_t row) { return rows[row].first_segment; });
    for (std::size_t index = 0; index < source_.spaces.size(); ++index) {
      columns.begin_table("step_usage", 0, static_cast<std::int64_t>(index), rows.size());
      columns.delta("peak", [&](std::size_t row) { return steps.usage_of(row, source_.spaces[index]).peak; });
      columns.delta("current", [&](std::size_t row) { return steps.usage_of(row, source_.spaces[index]).current; });
    }
  }

  void add_segments(page_columns& columns) const {
    const auto& rows = source_.found.segment_events();
    columns.begin_table("segments", 0, -1, rows.size());
    columns.delta("begin_event", [&](std::size_t row) { return rows[row].first; });
    columns.delta("end_event", [&](std::size_t row) { return rows[row].second; });
  }

  // --- stacks -------------------------------------------------------------------------------------------------------

  [[nodiscard]] std::int64_t space_of_stacks() const {
    return std::find(source_.spaces.begin(), source_.spaces.end(), cpu_space) - source_.spaces.begin();
  }

  [[nodiscard]] json stacks() const {
    if (!source_.stacks) return nullptr;
    const heap_stacks& recorded = source_.stacks->recorded;
    return {{"space", space_of_stacks()},
            {"from_bytes", recorded.from_bytes},
            {"sample_bytes", recorded.sample_bytes},
            {"missing_blocks", recorded.missing_blocks},
            {"variance_unit", source_.stacks->variance_unit},
            {"left_out", source_.stacks->left_out}};
  }

  void add_stacks(page_columns& columns) {
    if (!source_.stacks) return;
    const page_stacks& of = *source_.stacks;
    const std::int64_t space = space_of_stacks();
    const bool is_sample = of.recorded.sample_bytes > 0;
    std::vector<std::size_t> names;
    for (const stack_node& node : of.nodes) names.push_back(strings_.index_of(node.name));
    columns.begin_table("stack_nodes", 0, space, of.nodes.size());
    columns.plain("parent", [&](std::size_t row) { return of.nodes[row].parent; });
    columns.plain("kind", [&](std::size_t row) { return of.nodes[row].kind; });
    columns.plain("name", [&](std::size_t row) { return names[row]; });
    columns.delta("bytes", [&](std::size_t row) { return of.allocated[row].bytes; });
    columns.delta("blocks", [&](std::size_t row) { return of.allocated[row].blocks; });
    if (is_sample) {
      columns.delta("weight", [&](std::size_t row) { return of.allocated[row].weight; });
      columns.delta("sampled", [&](std::size_t row) { return of.allocated[row].sampled; });
      columns.delta("variance", [&](std::size_t row) { return of.allocated[row].variance; });
    }
    columns.begin_table("stack_moments", 0, space, of.buckets.size());
    columns.delta("begin_event", [&](std::size_t row) { return of.buckets[row].begin.event; });
    columns.delta("begin_ns", [&](std::size_t row) { return to_ns(of.buckets[row].begin); });
    columns.delta("event", [&](std::size_t row) { return of.buckets[row].at.event; });
    columns.delta("time_ns", [&](std::size_t row) { return to_ns(of.buckets[row].at); });
    columns.delta("total", [&](std::size_t row) { return of.buckets[row].total; });
    columns.begin_table("stack_parts", 0, space, of.parts.size());
    columns.delta("bucket", [&](std::size_t row) { return of.parts[row].bucket; });
    columns.plain("node", [&](std::size_t row) { return of.parts[row].node; });
    if (is_sample) columns.plain("column", [&](std::size_t row) { return of.parts[row].of; });
    columns.delta("bytes", [&](std::size_t row) { return of.parts[row].bytes; });
    columns.delta("blocks", [&](std::size_t row) { return of.parts[row].blocks; });
  }

  // --- frames -------------------------------------------------------------------------------------------------------

  void add_frame(page_columns& columns, const page_frame& frame, std::size_t number) {
    for (std::size_t index = 0; index < source_.spaces.size(); ++index) {
      add_timeline(columns, frame.spaces[index].timeline, number, index);
      add_blocks(columns, frame.spaces[index].blocks, number, index);
    }
    add_invocations(columns, frame.invocations, number);
  }

  void add_timeline(page_columns& columns, const frame_timeline& line, std::size_t frame, std::size_t space) const {
    const std::vector<frame_timeline::bucket>& rows = line.buckets();
    columns.begin_table("timeline", frame, static_cast<std::int64_t>(space), rows.size());
    columns.delta("begin_event", [&](std::size_t row) { return rows[row].begin.event; });
    columns.delta("begin_ns", [&](std::size_t row) { return to_ns(rows[row].begin); });
    columns.delta("event", [&](std::size_t row) { return rows[row].at.event; });
    columns.delta("time_ns", [&](std::size_t row) { return to_ns(rows[row].at); });
    columns.delta("total", [&](std::size_t row) { return rows[row].total; });
    columns.delta("blocks", [&](std::size_t row) { return rows[row].blocks; });
    columns.delta("low", [&](std::size_t row) { return rows[row].low; });
    const bool has_reserved = std::any_of(rows.begin(), rows.end(), [](const auto& each) { return each.reserved != 0; });
    if (has_reserved) columns.delta("reserved", [&](std::size_t row) { return rows[row].reserved; });
    // If everything active is live, the totals have it.
    const bool has_active = std::any_of(rows.begin(), rows.end(), [](const auto& each) { return each.active > each.total; });
    if (has_active) columns.delta("active", [&](std::size_t row) { return rows[row].active; });

    const std::vector<frame_timeline::part> parts = line.parts();
    const std::vector<std::uint32_t>& owners = source_.owners.of_space(source_.spaces[space]);
    columns.begin_table("parts", frame, static_cast<std::int64_t>(space), parts.size());
    columns.delta("bucket", [&](std::size_t row) { return parts[row].bucket; });
    columns.plain("owner", [&](std::size_t row) { return owners[parts[row].slot]; });
    columns.delta("bytes", [&](std::size_t row) { return parts[row].bytes; });
    columns.delta("blocks", [&](std::size_t row) { return parts[row].blocks; });
  }

  void add_blocks(page_columns& columns, const frame_blocks& blocks, std::size_t frame, std::size_t space) {
    const std::vector<frame_blocks::row>& rows = blocks.rows();
    const std::vector<std::uint32_t>& owners = source_.owners.of_space(source_.spaces[space]);
    const address_regions& regions = source_.survey.regions(source_.spaces[space]);
    std::vector<std::array<std::size_t, 3>> texts(rows.size());
    for (std::size_t row = 0; row < rows.size(); ++row)
      texts[row] = annotation_strings(names_.text(rows[row].annotation), strings_);
    columns.begin_table("blocks", frame, static_cast<std::int64_t>(space), rows.size());
    columns.delta("begin_event", [&](std::size_t row) { return rows[row].begin.event; });
    columns.delta("begin_ns", [&](std::size_t row) { return to_ns(rows[row].begin); });
    columns.delta("end_event", [&](std::size_t row) { return rows[row].end.event; });
    columns.delta("end_ns", [&](std::size_t row) { return to_ns(rows[row].end); });
    columns.plain("stays", [&](std::size_t row) { return rows[row].stays ? 1 : 0; });
    columns.delta("offset", [&](std::size_t row) { return regions.offset_of(rows[row].address); });
    columns.delta("bytes", [&](std::size_t row) { return rows[row].bytes; });
    columns.plain("owner", [&](std::size_t row) { return owners[rows[row].slot]; });
    columns.plain("name", [&](std::size_t row) { return texts[row][0]; });
    columns.plain("shape", [&](std::size_t row) { return texts[row][1]; });
    columns.plain("dtype", [&](std::size_t row) { return texts[row][2]; });
  }

  void add_invocations(page_columns& columns, const frame_invocations& invocations, std::size_t frame) const {
    const std::vector<frame_invocations::row>& rows = invocations.rows();
    columns.begin_table("invocations", frame, -1, rows.size());
    columns.plain("thread", [&](std::size_t row) { return rows[row].thread; });
    columns.plain("depth", [&](std::size_t row) { return rows[row].depth; });
    columns.plain("operation", [&](std::size_t row) { return rows[row].operation; });
    columns.delta("begin_event", [&](std::size_t row) { return rows[row].begin.event; });
    columns.delta("end_event", [&](std::size_t row) { return rows[row].end.event; });
    columns.delta("begin_ns", [&](std::size_t row) { return to_ns(rows[row].begin); });
    columns.delta("end_ns", [&](std::size_t row) { return to_ns(rows[row].end); });
    columns.plain("count", [&](std::size_t row) { return rows[row].count; });
    for (std::size_t space = 0; space < source_.spaces.size(); ++space) {
      columns.begin_table("deltas", frame, static_cast<std::int64_t>(space), rows.size());
      columns.delta("delta", [&](std::size_t row) { return invocations.delta(rows[row], space); });
    }
  }

  const page_detail& source_;
  name_view names_;
  const clock_readings& clock_;
  page_strings strings_;
  std::vector<std::size_t> patterns_;           ///< indices of those in the page
  std::vector<std::size_t> number_of_pattern_;  ///< by index plus 1: the position in the page plus 1, or 0
};

}  // namespace

page_tables tables_of(const page_detail& source, std::size_t max_bytes) {
  page_columns columns;
  nlohmann::ordered_json detail = page_detail_writer{source}.write(columns, max_bytes);
  return {std::move(detail), columns.bytes()};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
