#include <memprof/config.hpp>
#include <memprof/detail/saturating.hpp>
#include <memprof/detail/vector.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/segments_by_name.hpp>
#include <memprof/toolkit/format/csv_text.hpp>
#include <memprof/toolkit/format/tables/csv.hpp>
#include <memprof/trace/fact_table.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// The fewest digits that read back as the same number.
[[nodiscard]] std::string shortest(double value) {
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), written.ptr};
}

class csv_record {
 public:
  explicit csv_record(std::string& text) : text_(text) {}
  ~csv_record() { text_ += "\r\n"; }
  csv_record(const csv_record&) = delete;
  csv_record& operator=(const csv_record&) = delete;

  csv_record& add(std::string_view value) {
    append_csv_text(next_cell(), value);
    return *this;
  }
  csv_record& add(std::int64_t value) {
    next_cell() += std::to_string(value);
    return *this;
  }
  csv_record& add(double value) {
    next_cell() += shortest(value);
    return *this;
  }
  csv_record& add(const value_summary& values, std::int64_t count) {
    for (const std::int64_t value : {values.first, values.last, values.least, values.greatest}) add(value);
    return add(count == 0 ? 0.0 : static_cast<double>(values.sum) / static_cast<double>(count));
  }

 private:
  [[nodiscard]] std::string& next_cell() {
    if (!is_first_) text_ += ',';
    is_first_ = false;
    return text_;
  }

  std::string& text_;
  bool is_first_ = true;
};

}  // namespace

}  // namespace detail

std::string segments_csv(const profile& source) {
  std::string text;
  {
    detail::csv_record titles{text};
    titles.add("space").add("segment").add("count");
    for (const char* const number : {"segment_peak", "segment_change", "cumulative_current"}) {
      for (const char* const which : {"_first", "_last", "_least", "_greatest", "_mean"}) {
        titles.add(std::string{number} + which);
      }
    }
    titles.add("growth_per_step").add("growth_r_squared");
  }
  for (const space_profile& space : source.spaces) {
    for (const detail::segments_of_name& name : detail::segments_by_name(source, space)) {
      detail::csv_record record{text};
      record.add(space.name).add(name.name).add(name.count);
      record.add(name.segment_peak, name.count).add(name.segment_change, name.count).add(name.cumulative_current, name.count);
      record.add(name.growth.per_step).add(name.growth.r_squared);
    }
  }
  return text;
}

std::string every_segment_csv(const profile& source) {
  std::string text;
  {
    detail::csv_record titles{text};
    for (const char* const title : {"space", "number", "step", "segment", "begin_ns", "end_ns", "segment_peak", "allocations",
                                    "deallocations", "segment_change", "cumulative_peak", "cumulative_current"}) {
      titles.add(title);
    }
  }
  const detail::segment_steps steps = detail::steps_of(source);
  for (const space_profile& space : source.spaces) {
    for (std::size_t index = 0; index < source.segments.size() && index < space.segments.size(); ++index) {
      const auto& segment = source.segments[index];
      const auto& usage = space.segments[index];
      detail::csv_record record{text};
      record.add(space.name)
          .add(segment.number >= 0 ? segment.number : static_cast<std::int64_t>(index))
          .add(steps.of_segment[index]);
      record.add(segment.name).add(segment.begin_ns).add(segment.end_ns);
      for (const std::int64_t bytes : {usage.segment_peak, usage.allocations, usage.deallocations, usage.segment_change,
                                       usage.cumulative_peak, usage.cumulative_current}) {
        record.add(bytes);
      }
    }
  }
  return text;
}

std::string owners_csv(const profile& source) {
  std::string text;
  {
    detail::csv_record titles{text};
    for (const char* const title : {"space", "operation", "others", "bytes_at_peak", "blocks_at_peak", "bytes_at_end"})
      titles.add(title);
  }
  struct held {
    std::int64_t at_peak = 0;
    std::int64_t blocks = 0;
    std::int64_t at_end = 0;
  };
  for (const space_profile& space : source.spaces) {
    std::vector<std::string_view> order;
    std::map<std::string_view, held> owners;
    const auto owner = [&](std::string_view path) -> held& {
      const auto [at, is_new] = owners.try_emplace(path);
      if (is_new) order.push_back(path);
      return at->second;
    };
    for (const owned_bytes& row : space.live_at_peak.by_operation) {
      owner(row.owner).at_peak = row.bytes;
      owner(row.owner).blocks = row.blocks;
    }
    std::int64_t outside = space.cumulative_current;
    for (const auto& operation : source.operations) {
      for (const auto& usage : operation.usage) {
        if (usage.space != space.name || usage.live == 0) continue;
        owner(operation.path).at_end = usage.live;
        outside = detail::subtract_saturating(outside, usage.live);
      }
    }
    if (outside != 0) owner({}).at_end = outside;
    for (const std::string_view path : order) {
      const held& bytes = owners[path];
      detail::csv_record{text}
          .add(space.name)
          .add(path)
          .add(std::int64_t{0})
          .add(bytes.at_peak)
          .add(bytes.blocks)
          .add(bytes.at_end);
    }
    if (space.live_at_peak.remaining_bytes != 0) {
      detail::csv_record{text}
          .add(space.name)
          .add("")
          .add(std::int64_t{1})
          .add(space.live_at_peak.remaining_bytes)
          .add("")
          .add("");
    }
  }
  return text;
}

std::string fact_csv(const fact_table& table) {
  std::string text;
  {
    detail::csv_record titles{text};
    for (const std::string& column : table.columns) titles.add(std::string_view{column});
  }
  for (const vector<fact_value>& row : table.rows) {
    detail::csv_record record{text};
    for (const fact_value& value : row) std::visit([&](const auto& held) { record.add(held); }, value);
  }
  return text;
}

}  // namespace memprof::inline MEMPROF_ABI
