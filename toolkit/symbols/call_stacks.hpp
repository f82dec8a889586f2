#pragma once

#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// The stacks of a trace, from the names that its allocations have as labels: docs/trace_format.md. Accepts any names.
class call_stacks {
 public:
  /// `names` must outlive it.
  explicit call_stacks(extend::name_view names) noexcept : names_(names) {}

  /// The frames of a stack, outermost first; empty if the label is 0 or no stack. Valid as long as the object.
  [[nodiscard]] const std::vector<detail::stack_frame>& frames(extend::label stack);

  /// The text of a frame's module (`module_text`).
  [[nodiscard]] detail::module_text module_of(const detail::stack_frame& frame) const noexcept {
    return detail::module_text::of(names_.text(frame.module));
  }

 private:
  /// Those of a stack whose parts are known.
  [[nodiscard]] std::vector<detail::stack_frame> read(extend::label stack) const;

  extend::name_view names_;
  std::unordered_map<extend::label, std::vector<detail::stack_frame>> known_;
};

}  // namespace memprof::inline MEMPROF_ABI
