#include <memprof/config.hpp>
#include <memprof/toolkit/symbols/call_stacks.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

const std::vector<detail::stack_frame>& call_stacks::frames(label stack) {
  // Each stack refers to an earlier one; first those that are not known, innermost last.
  std::vector<label> wanted;
  for (label next = stack; known_.find(next) == known_.end();) {
    wanted.push_back(next);
    const std::uint64_t outer = detail::stack_text_reader{names_.text(next)}.outer();
    if (next == 0 || outer == 0 || outer >= next) break;  // what refers to a later one is no stack
    next = static_cast<label>(outer);
  }
  for (; !wanted.empty(); wanted.pop_back()) {
    detail::stack_text_reader in{names_.text(wanted.back())};
    std::vector<detail::stack_frame> found;
    if (const auto outer = known_.find(static_cast<label>(in.outer())); in.outer() != 0 && outer != known_.end()) {
      found = outer->second;
      found.resize(std::min<std::size_t>(found.size(), in.shared()));
    }
    for (detail::stack_frame frame; found.size() < detail::max_stack_frames && in.next(frame);) found.push_back(frame);
    known_[wanted.back()] = in.has_failed() ? std::vector<detail::stack_frame>{} : std::move(found);
  }
  return known_[stack];
}

}  // namespace memprof::inline MEMPROF_ABI
