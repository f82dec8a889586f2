#pragma once

#include <memprof/detail/struct_fields.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/space_facets.hpp>
#include <memprof/trace/field_names.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

/// @file
/// The names and fields of a profile's structs, for code that reads or writes all of them: files, diffs, schemas. A struct with
/// an unnamed field does not compile; a test compares the names with the text of profile.hpp, and with Boost.PFR where available.

namespace memprof::inline MEMPROF_ABI {

/// Names of an enumeration's values, in order. Specialise it to make an enumeration a `named_enumeration`.
template <class E>
inline constexpr detail::not_reflected enumeration_names{};

/// A struct whose fields have names.
template <class T>
concept reflected = !std::same_as<std::remove_cv_t<decltype(detail::field_names<T>)>, detail::not_reflected>;

/// An enumeration whose values have names.
template <class E>
concept named_enumeration =
    std::is_enum_v<E> && !std::same_as<std::remove_cv_t<decltype(enumeration_names<E>)>, detail::not_reflected>;

template <>
inline constexpr auto& enumeration_names<category> = detail::category_names;

template <>
inline constexpr auto& enumeration_names<requires_grad> = detail::requires_grad_names;

template <>
inline constexpr auto& enumeration_names<run_mode> = detail::run_mode_names;

namespace detail {

template <>
inline constexpr name_list field_names<segment>{"name", "begin_ns", "end_ns", "number", "step"};

template <>
inline constexpr name_list later_fields<segment>{"number", "step"};

template <>
inline constexpr name_list signed_fields<segment>{"number", "step"};

template <>
inline constexpr name_list field_names<named_segments>{"name",         "stands_for_others", "count",      "kept",
                                                       "first_number", "last_number",       "duration_ns"};

template <>
inline constexpr name_list later_fields<named_segments>{"stands_for_others"};

template <>
inline constexpr name_list signed_fields<named_segments>{"first_number", "last_number"};

/// `peak_live_bytes` is "live_at_peak" in JSON, whose keys do not change.
template <>
inline constexpr name_list field_names<segment_summary>{
    "segment",        "segment_peak",       "live_at_peak",     "allocations",        "deallocations",
    "segment_change", "cumulative_current", "allocation_count", "deallocation_count", "growth"};

template <>
inline constexpr name_list field_names<segment_usage>{
    "segment",         "segment_peak",       "allocations",      "deallocations",      "segment_change",
    "cumulative_peak", "cumulative_current", "allocation_count", "deallocation_count", "peak_time_ns",
    "peak_operation",  "live_at_peak"};

template <>
inline constexpr name_list nullable_fields<segment_usage>{"peak_operation"};

template <>
inline constexpr name_list signed_fields<segment_usage>{"segment_change", "cumulative_current"};

template <>
inline constexpr name_list field_names<timeline_point>{"time_ns", "peak", "current"};

template <>
inline constexpr name_list signed_fields<timeline_point>{"peak", "current"};

template <>
inline constexpr name_list field_names<memory_timeline>{"events_per_point", "points"};

template <>
inline constexpr name_list field_names<space_anomalies>{"unmatched_frees",    "replaced_allocations", "mismatched_sizes",
                                                        "cross_thread_frees", "unknown_annotations",  "untracked_allocations",
                                                        "null_allocations",   "overlapping_blocks"};

template <>
inline constexpr name_list later_fields<space_anomalies>{"null_allocations", "overlapping_blocks"};

template <>
inline constexpr name_list field_names<space_profile>{"name",
                                                      "cumulative_peak",
                                                      "cumulative_current",
                                                      "allocations",
                                                      "deallocations",
                                                      "allocation_count",
                                                      "deallocation_count",
                                                      "peak_segment",
                                                      "peak_time_ns",
                                                      "peak_operation",
                                                      "live_at_peak",
                                                      "current_by_category",
                                                      "growing",
                                                      "capacity",
                                                      "capacity_is_per_core",
                                                      "first_shortfall",
                                                      "segments",
                                                      "segments_by_name",
                                                      "timeline",
                                                      "anomalies",
                                                      "cores",
                                                      "reserved",
                                                      "active",
                                                      "streams",
                                                      "out_of_memory",
                                                      "further_out_of_memory",
                                                      "stands_for_others",
                                                      "facets"};

template <>
inline constexpr name_list nullable_fields<space_profile>{"peak_operation"};

template <>
inline constexpr name_list signed_fields<space_profile>{"cumulative_current", "peak_segment"};

template <>
inline constexpr name_list later_fields<space_profile>{"current_by_category",
                                                       "growing",
                                                       "capacity",
                                                       "capacity_is_per_core",
                                                       "first_shortfall",
                                                       "segments_by_name",
                                                       "cores",
                                                       "reserved",
                                                       "active",
                                                       "streams",
                                                       "out_of_memory",
                                                       "further_out_of_memory",
                                                       "stands_for_others",
                                                       "facets"};

template <>
inline constexpr name_list field_names<memory_profile>{"name",           "cumulative_peak", "cumulative_current",
                                                       "peak_segment",   "peak_time_ns",    "peak_space",
                                                       "peak_operation", "spaces",          "live_at_peak"};

template <>
inline constexpr name_list nullable_fields<memory_profile>{"peak_space", "peak_operation"};

template <>
inline constexpr name_list signed_fields<memory_profile>{"peak_segment"};

template <>
inline constexpr name_list field_names<operation_invocation>{"thread", "begin_ns", "end_ns", "delta", "peak"};

template <>
inline constexpr name_list signed_fields<operation_invocation>{"thread", "delta"};

template <>
inline constexpr name_list field_names<operation_usage>{
    "space",          "total_delta",      "self_delta",       "max_delta",          "allocated", "freed",
    "self_allocated", "self_freed",       "allocation_count", "deallocation_count", "peak",      "self_peak",
    "live",           "first_invocation", "last_invocation",  "largest_invocation", "inferred"};

template <>
inline constexpr name_list later_fields<operation_usage>{"first_invocation", "last_invocation", "largest_invocation", "inferred"};

template <>
inline constexpr name_list signed_fields<operation_usage>{"total_delta", "self_delta", "max_delta"};

template <>
inline constexpr name_list field_names<operation_profile>{"path", "name", "parent", "invocations", "usage", "stands_for_others"};

template <>
inline constexpr name_list later_fields<operation_profile>{"stands_for_others"};

template <>
inline constexpr name_list signed_fields<operation_profile>{"parent"};

template <>
inline constexpr name_list field_names<checkpoint_usage>{"space", "live_bytes", "live_blocks", "largest_blocks"};

template <>
inline constexpr name_list field_names<checkpoint>{"name", "number", "time_ns", "live_bytes", "live_blocks", "spaces"};

template <>
inline constexpr name_list nullable_fields<checkpoint>{"name"};

template <>
inline constexpr name_list field_names<process_info>{"id", "host", "command_line", "rank", "world_size", "local_rank"};

template <>
inline constexpr name_list signed_fields<process_info>{"id", "rank", "world_size", "local_rank"};

template <>
inline constexpr name_list field_names<profiler_cost>{
    "events", "drains", "memory_bytes", "memory_bytes_at_million_events", "record_ns_per_event", "drain_ns_per_event"};

template <>
inline constexpr name_list field_names<event_anomalies>{
    "dropped_events",  "reentrant_events", "rejected_events",  "unbalanced_scopes", "missing_events",
    "too_deep_scopes", "other_segments",   "other_operations", "other_names",       "missing_fact_rows"};

template <>
inline constexpr name_list later_fields<event_anomalies>{"missing_events",   "too_deep_scopes", "other_segments",
                                                         "other_operations", "other_names",     "missing_fact_rows"};

template <>
inline constexpr name_list field_names<provenance>{"format",  "file",    "line",   "section", "rounding",
                                                   "planned", "assumed", "absent", "remarks"};

template <>
inline constexpr name_list later_fields<provenance>{"planned", "assumed"};

template <>
inline constexpr name_list field_names<profile>{
    "library_version", "mode",        "device",           "exact",         "complete",   "begin_unix_ns", "process",
    "duration_ns",     "segments",    "segments_by_name", "segment_count", "step_count", "spaces",        "memories",
    "operations",      "checkpoints", "checkpoint_count", "facts",         "anomalies",  "cost",          "provenance"};

template <>
inline constexpr name_list later_fields<profile>{"device",   "process",     "segments_by_name", "segment_count", "step_count",
                                                 "memories", "checkpoints", "checkpoint_count", "facts",         "provenance"};

template <>
inline constexpr name_list signed_fields<profile>{"begin_unix_ns"};

}  // namespace detail

/// Every struct of a profile.
using profile_structs = decltype(
    detail::type_list<process_info, value_summary, event_tally, linear_fit, owned_bytes, live_block, live_set>{} +
    detail::facet_structs{} +
    detail::type_list<operation_invocation, operation_usage, operation_profile, owner_growth, segment, named_segments,
                      segment_summary, segment_usage, timeline_point, memory_timeline, space_anomalies, space_profile,
                      memory_profile, checkpoint_usage, checkpoint, profiler_cost, event_anomalies, provenance, profile>{});

/// The number of fields of a struct, the type of the field with a given index, and the field itself.
template <reflected T>
inline constexpr std::size_t field_count = detail::field_names<T>.size();
template <std::size_t Index, reflected T>
[[nodiscard]] constexpr auto& field_at(T& value) noexcept {
  return detail::with_fields<field_count<T>>(
      value, [](auto&... fields) -> auto& { return detail::field_among<Index>(fields...); });
}
template <reflected T, std::size_t Index>
using field_type = std::remove_reference_t<decltype(field_at<Index>(std::declval<T&>()))>;

/// Calls `function(name, field)` for each field of `value`, in order of declaration.
template <class T, class Function>
requires reflected<std::remove_const_t<T>>
constexpr void for_each_field(T& value, Function&& function) {
  constexpr auto& names = detail::field_names<std::remove_const_t<T>>;
  detail::with_fields<names.size()>(value, [&](auto&... fields) {
    std::size_t index = 0;
    (function(names[index++], fields), ...);
  });
}

}  // namespace memprof::inline MEMPROF_ABI
