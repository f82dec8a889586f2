#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// What a trace of a PyTorch memory snapshot has besides events, and the names it uses.

namespace memprof::inline MEMPROF_ABI {

/// A segment of PyTorch's caching allocator as given in a snapshot, in bytes: a row of the table `torch_segments` of its trace.
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

/// Names that do not come from the snapshot.
inline constexpr std::string_view torch_before_trace =
    "(before the trace)";  ///< operation of what was live at the start of the history
inline constexpr std::string_view torch_before_segment = "BEFORE_TRACE";  ///< segment in which that is allocated
inline constexpr std::string_view torch_unnamed_segment = "TRACE";        ///< segment outside every annotation

}  // namespace memprof::inline MEMPROF_ABI
