#pragma once

#include <memprof/trace/annotation.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// Where sources report memory events: `event_sink` records them in this process, `trace_writer` puts them into a trace. A source
/// written against this concept works for live captures, files and tests.
///
/// Peaks are exact only if calls keep this order: report an allocation after it has happened, a deallocation before.
template <class T>
concept event_writer = requires(T writer, space_id space, block_address address, std::size_t bytes, optional_category category,
                                const annotation& description, typename T::open_operation_type& open, fact_table facts,
                                std::string_view name) {
  { writer.space(name) } -> std::convertible_to<space_id>;
  writer.allocate(space, address, bytes, category);
  writer.deallocate(space, address, bytes);
  writer.annotate(address, description);
  { writer.begin_operation(name, category) } -> std::same_as<typename T::open_operation_type>;
  writer.end_operation(open);
  writer.end_segment(name);
  writer.add_facts(facts);
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
