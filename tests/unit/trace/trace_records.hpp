#pragma once

#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_tables.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace memprof::extend {

inline bool operator==(const event& left, const event& right) noexcept {
  const auto fields = [](const event& of) {
    return std::tuple{of.stamp, of.address, of.bytes, of.label, of.kind, of.space, of.tag};
  };
  return fields(left) == fields(right);
}

}  // namespace memprof::extend

namespace memprof_tests {

/// All that a trace hands to a visitor.
struct trace_records {
  std::vector<std::pair<std::uint32_t, memprof::extend::event>> all;  ///< events with their rings
  std::vector<memprof::extend::capture_info> infos;
  std::vector<std::string> names;
  std::vector<memprof::extend::space_definition> spaces;
  memprof::detail::fact_tables tables;

  void info(const memprof::extend::capture_info& info) { infos.push_back(info); }
  void name(memprof::extend::label, std::string_view text) { names.emplace_back(text); }
  void space(const memprof::extend::space_definition& space) { spaces.push_back(space); }
  void facts(memprof::extend::fact_part&& part) { tables.add(std::move(part)); }
  void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t ring) {
    for (; first != last; ++first) all.emplace_back(ring, *first);
  }
};
static_assert(memprof::extend::trace_visitor<trace_records>);

}  // namespace memprof_tests
