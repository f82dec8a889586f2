#include <memprof/config.hpp>
#include <memprof/toolkit/format/heaptrack/stack_labels.hpp>
#include <memprof/toolkit/format/heaptrack/stacks.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

label heaptrack_stack_labels::of(std::uint32_t stack, trace_writer& writer) {
  if (stack == 0 || stacks_.innermost(stack).depth == 0) return 0;
  if (known_.size() <= stacks_.stack_count()) known_.resize(stacks_.stack_count() + 1);
  if (known_[stack].own != 0) return known_[stack].own;
  // A stack that is cut does not begin as the stacks around it do.
  const bool is_cut = stacks_.innermost(stack).depth > max_stack_frames;
  path_.clear();
  std::uint32_t at = stack;
  for (std::size_t frames = 0; at != 0 && (is_cut ? frames < max_stack_frames : known_[at].through == 0);
       at = stacks_.innermost(at).around) {
    path_.push_back(at);
    if (stacks_.innermost(at).pointer != 0) ++frames;
  }
  const bool is_shared = !is_cut && at != 0;
  stack_text text{is_shared ? stack_part{known_[at].through, stacks_.innermost(at).depth} : stack_part{}};
  for (auto call = path_.rbegin(); call != path_.rend(); ++call) {
    const std::uint32_t pointer = stacks_.innermost(*call).pointer;
    if (pointer != 0) text.add({module_of(pointer, writer), stacks_.pointer(pointer).address + address_offset_});
  }
  const label made = writer.label_of(text.view());
  if (!is_cut) {
    for (const std::uint32_t each : path_) known_[each].through = made;
  }
  return known_[stack].own = made;
}

label heaptrack_stack_labels::module_of(std::uint32_t pointer, trace_writer& writer) {
  if (modules_.size() <= stacks_.instruction_count()) modules_.resize(stacks_.instruction_count() + 1);
  if (modules_[pointer] != 0) return modules_[pointer];
  const heaptrack_stacks::instruction& called = stacks_.pointer(pointer);
  text_.clear();
  add_text(stacks_.text(called.module));
  text_ += {name_separator, name_separator};  // neither the build-id nor the address at which it was loaded is recorded
  for (std::uint32_t index = called.first; index < called.first + called.count; ++index) {
    const heaptrack_stacks::frame& call = stacks_.frame_at(index);
    text_ += name_separator;
    add_text(stacks_.text(call.function));
    text_ += name_separator;
    add_text(stacks_.text(call.file));
    text_ += name_separator;
    text_ += std::to_string(call.line);
  }
  return modules_[pointer] = writer.label_of(text_);
}

void heaptrack_stack_labels::add_text(std::string_view text) {
  for (const char character : text) text_ += character == name_separator ? ' ' : character;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
