#pragma once

#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

class trace;

namespace detail {

/// The head of a trace whose oldest events are dropped: the state they left, and all records that are not events.
class trace_head {
 public:
  trace_head() = default;
  trace_head(const trace_head&) = delete;
  trace_head& operator=(const trace_head&) = delete;

  virtual void info(const capture_info& info) = 0;
  virtual void name(label id, std::string_view text) noexcept = 0;
  virtual void space(const space_definition& space) noexcept = 0;
  virtual void facts(fact_table&& table) = 0;
  /// Takes the oldest chunk of events and returns how many events it held.
  virtual std::uint64_t drop(const unsigned char* bytes, std::size_t size) noexcept = 0;
  /// Number of dropped events.
  [[nodiscard]] virtual std::uint64_t dropped() const noexcept = 0;
  /// Writes what precedes the first kept chunk.
  virtual void write(trace& beginning) = 0;
  /// Bytes taken from the system.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
  virtual void destroy() noexcept = 0;

 protected:
  ~trace_head() = default;
};

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
