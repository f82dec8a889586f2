#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/format/heaptrack/stacks.hpp>
#include <memprof/trace/label.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {
namespace extend {

class trace_writer;

}  // namespace extend
}  // namespace memprof::inline MEMPROF_ABI

namespace memprof::inline MEMPROF_ABI::detail {

/// The stacks of a heaptrack recording in a trace's own table, with the names of their calls: docs/trace_format.md, "Stacks".
/// Takes 8 bytes for each stack of the recording, and 4 for each instruction.
class heaptrack_stack_labels {
 public:
  explicit heaptrack_stack_labels(const heaptrack_stacks& stacks) noexcept : stacks_(stacks) {}

  /// What to add to the recording's addresses, so that they are those that calls return to.
  void set_address_offset(std::uint64_t bytes) noexcept { address_offset_ = bytes; }
  /// The label of an allocation with that stack, of which the innermost 64 return addresses are kept; 0 if it has no frame.
  [[nodiscard]] label of(std::uint32_t stack, trace_writer& writer);

 private:
  struct known_stack {
    label own = 0;
    label through = 0;  ///< of any stack that begins as this one does
  };

  [[nodiscard]] label module_of(std::uint32_t pointer, trace_writer& writer);
  void add_text(std::string_view text);

  const heaptrack_stacks& stacks_;
  std::uint64_t address_offset_ = 0;
  std::vector<known_stack> known_;   ///< by stack
  std::vector<label> modules_;       ///< by instruction
  std::vector<std::uint32_t> path_;  ///< the stacks from one to those around it
  std::string text_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
