#include <memprof/config.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/heaptrack/operations.hpp>
#include <memprof/toolkit/format/heaptrack/stacks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

const std::vector<std::uint32_t>& heaptrack_operations::operations_of(std::uint32_t stack) {
  expanded_.clear();
  bool is_complete = false;
  std::uint32_t outermost = no_name;  // of the library's frames
  for (; stack != 0 && !is_complete; stack = stacks_.innermost(stack).around) {
    const std::uint32_t pointer = stacks_.innermost(stack).pointer;
    if (pointer == 0) continue;
    const heaptrack_stacks::instruction& called = stacks_.pointer(pointer);
    for (std::uint32_t index = called.first; index < called.first + called.count && !is_complete; ++index) {
      const std::uint32_t number = name_of_frame(index, called.module);
      const name& found = names_[number];
      is_complete = found.is_outermost;
      if (found.is_operator_new && expanded_.empty()) continue;
      if (found.is_library && kept_ == stack_frames::own) {
        outermost = number;
      } else {
        expanded_.push_back(number);
      }
    }
  }
  if (expanded_.empty() && outermost != no_name) expanded_.push_back(outermost);
  std::reverse(expanded_.begin(), expanded_.end());
  if (expanded_.size() > max_operations) {
    expanded_[max_operations - 1] = expanded_.back();
    expanded_.resize(max_operations);
  }
  return expanded_;
}

std::uint32_t heaptrack_operations::name_of_frame(std::uint32_t index, std::uint32_t module) {
  if (of_frame_.size() < stacks_.frame_count()) of_frame_.resize(stacks_.frame_count(), no_name);
  if (of_frame_[index] != no_name) return of_frame_[index];
  const heaptrack_stacks::frame& at = stacks_.frame_at(index);
  const std::string_view function = stacks_.text(at.function);
  std::string text = frame_name(function.empty() ? "??" : function, stacks_.text(at.file == 0 ? module : at.file),
                                at.line == 0 ? std::string{} : std::to_string(at.line));
  const auto [known, is_new] = ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    const std::string bare = bare_function_name(function);
    names_.push_back({&known->first, bare == "operator new" || bare == "operator new[]", is_library_function(bare),
                      bare == "main" || bare == "__libc_start_main" || bare == "__static_initialization_and_destruction_0"});
  }
  return of_frame_[index] = known->second;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
