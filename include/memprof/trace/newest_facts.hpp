#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/fact_tables.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// The newest table of each name, encoded in pages, so that its destruction need not be hidden from the hooks.
class newest_facts {
 public:
  void put(const fact_table& table) {
    encoded_.facts(table);
    // Tables arrive again whenever a profile is requested.
    if (encoded_.encoded_bytes() > 2 * newest_bytes_ + std::size_t{256} * 1024) forget_old();
  }
  /// In order of first arrival.
  [[nodiscard]] vector<fact_table> tables() const {
    collector found;
    encoded_.visit(found);
    return found.tables.take();
  }
  /// The tables as records; older rows of some tables may precede.
  [[nodiscard]] const trace& encoded() const noexcept { return encoded_; }

 private:
  struct collector {
    fact_tables tables{no_fact_limits};
    void info(const capture_info&) {}
    void name(label, std::string_view) {}
    void space(const space_definition&) {}
    void facts(fact_part&& part) { tables.add(std::move(part)); }
    void events(const event*, const event*, std::uint32_t) {}
  };

  void forget_old() {
    trace newest;
    for (const fact_table& table : tables()) newest.facts(table);
    encoded_ = std::move(newest);
    newest_bytes_ = encoded_.encoded_bytes();
  }

  trace encoded_;
  std::size_t newest_bytes_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
