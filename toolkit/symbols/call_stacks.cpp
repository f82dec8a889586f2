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

namespace {

[[nodiscard]] std::ptrdiff_t count_of(const std::vector<detail::stack_frame>& frames, const detail::stack_part& part) {
  return static_cast<std::ptrdiff_t>(std::min(frames.size(), part.frames));
}

}  // namespace

const std::vector<detail::stack_frame>& call_stacks::frames(extend::label stack) {
  // Each stack refers to earlier ones, which come first.
  for (std::vector<extend::label> wanted{stack}; !wanted.empty();) {
    const extend::label next = wanted.back();
    if (known_.find(next) != known_.end()) {
      wanted.pop_back();
      continue;
    }
    const detail::stack_text_reader in{names_.text(next)};
    const std::size_t before = wanted.size();
    for (const detail::stack_part& part : {in.outer(), in.inner()}) {
      const bool is_earlier = part.stack != 0 && part.stack < next;  // what refers to a later one is no stack
      if (is_earlier && known_.find(part.stack) == known_.end()) wanted.push_back(part.stack);
    }
    if (wanted.size() != before) continue;
    known_[next] = read(next);
    wanted.pop_back();
  }
  return known_[stack];
}

std::vector<detail::stack_frame> call_stacks::read(extend::label stack) const {
  detail::stack_text_reader in{names_.text(stack)};
  std::vector<detail::stack_frame> found;
  if (const auto outer = known_.find(in.outer().stack); in.outer().stack != 0 && outer != known_.end())
    found.assign(outer->second.begin(), outer->second.begin() + count_of(outer->second, in.outer()));
  for (detail::stack_frame frame; found.size() < detail::max_stack_frames && in.next(frame);) found.push_back(frame);
  if (in.has_failed()) return {};
  if (const auto inner = known_.find(in.inner().stack); in.inner().stack != 0 && inner != known_.end())
    found.insert(found.end(), inner->second.end() - count_of(inner->second, in.inner()), inner->second.end());
  if (found.size() > detail::max_stack_frames) found.resize(detail::max_stack_frames);
  return found;
}

}  // namespace memprof::inline MEMPROF_ABI
