#pragma once

#include <memprof/detail/heap.hpp>
#include <memprof/ledger/out_of_memory_ledger.hpp>
#include <memprof/ledger/stream_ledger.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/trace/clock_readings.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The names of a row, as `stream_and_pool` joined them.
inline void name_stream(stream_usage& row, std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] != name_separator) ++end;
  row.stream = text.substr(0, end);
  if (end < text.size()) row.pool = text.substr(end + 1);
}

[[nodiscard]] inline stream_usage to_stream_usage(const stream_record& record) {
  return {{}, {}, record.peak_live, record.live, record.allocation_count, record.peak_reserved, record.reserved, false};
}

/// The streams of a space, most reserved first, of equal ones those with the most live bytes, then those that came first.
template <class Streams>
[[nodiscard]] std::vector<stream_usage> build_streams(const Streams& streams, name_view labels) {
  const std::size_t count = streams.rows().size();
  std::vector<std::size_t> order(count);
  for (std::size_t index = 0; index < count; ++index) order[index] = index;
  sort_rows(order.data(), count, [&](std::size_t left, std::size_t right) {
    const stream_record& a = streams.rows()[left];
    const stream_record& b = streams.rows()[right];
    if (a.peak_reserved != b.peak_reserved) return a.peak_reserved > b.peak_reserved;
    return a.peak_live != b.peak_live ? a.peak_live > b.peak_live : left < right;
  });
  std::vector<stream_usage> rows(count + (streams.has_further() ? 1 : 0));
  for (std::size_t row = 0; row < count; ++row) {
    rows[row] = to_stream_usage(streams.rows()[order[row]]);
    name_stream(rows[row], labels.text(streams.rows()[order[row]].name));
  }
  if (streams.has_further()) {
    rows[count] = to_stream_usage(streams.further());
    rows[count].stream = "other streams";
    rows[count].stands_for_others = true;
  }
  return rows;
}

/// What failed in a space.
template <class Failed, class Rows>
[[nodiscard]] std::vector<out_of_memory_failure> build_out_of_memory(const Failed& failed, const clock_readings& time,
                                                                     const std::vector<std::string>& paths,
                                                                     const Rows& segments) {
  std::vector<out_of_memory_failure> rows(failed.kept().size());
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const out_of_memory_record& record = failed.kept()[index];
    rows[index] = {record.requested, record.device_free, record.live, record.reserved, {}, -1, time.to_ns(record.stamp)};
    if (record.operation != 0) rows[index].operation = paths[record.operation];
    rows[index].segment = segments.index_of(record.segment);
    rows[index].segment_number = segments.number_of(record.segment);
  }
  return rows;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
