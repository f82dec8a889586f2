#include <memprof/config.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/heaptrack/stacks.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

template <class Table>
bool has_room(const Table& table) noexcept {
  return table.size() < std::numeric_limits<std::uint32_t>::max();
}

}  // namespace

bool heaptrack_numbers::next(std::uint64_t& value) noexcept {
  const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, 16);
  const auto size = static_cast<std::size_t>(end - rest_.data());
  if (fault != std::errc{} || (size != rest_.size() && rest_[size] != ' ')) return false;
  rest_.remove_prefix(size == rest_.size() ? size : size + 1);
  return true;
}

const char* heaptrack_stacks::add_string(std::string_view text) {
  if (!has_room(string_ends_)) return "more strings than heaptrack can number";
  strings_ += text;
  string_ends_.push_back(strings_.size());
  return nullptr;
}

const char* heaptrack_stacks::add_instruction(std::string_view line) {
  constexpr const char* expected = "expected an address, a module, and for each frame its function, file and line";
  heaptrack_numbers numbers{line};
  std::uint64_t address = 0;
  std::uint64_t module = 0;
  if (!numbers.next(address) || !numbers.next(module)) return expected;
  instruction added{static_cast<std::uint32_t>(frames_.size()), 0};
  do {
    std::uint64_t function = 0;
    std::uint64_t file = 0;
    std::uint64_t number = 0;
    if (!numbers.rest().empty() && !numbers.next(function)) return expected;
    if (!numbers.rest().empty() && (!numbers.next(file) || !numbers.next(number))) return expected;
    if (std::max({module, function, file}) > string_ends_.size()) return "a string is not defined above";
    if (!has_room(frames_) || ++added.count > max_frames) return "more frames than a stack can have";
    frames_.push_back(frame(text(function), file == 0 ? text(module) : text(file), file == 0 ? 0 : number));
  } while (!numbers.rest().empty());
  if (!has_room(instructions_)) return "more instruction pointers than heaptrack can number";
  instructions_.push_back(added);
  return nullptr;
}

const char* heaptrack_stacks::add_stack(std::string_view line) {
  heaptrack_numbers numbers{line};
  std::uint64_t pointer = 0;
  std::uint64_t around = 0;
  if (!numbers.next(pointer) || !numbers.next(around) || !numbers.rest().empty())
    return "expected an instruction pointer and a stack";
  if (pointer > instructions_.size()) return "the instruction pointer is not defined above";
  if (around > calls_.size()) return "the stack is not defined above";
  const std::size_t frames =
      (around == 0 ? 0 : calls_[around - 1].frames) + (pointer == 0 ? 0 : instructions_[pointer - 1].count);
  // A call at an unknown address has no frame, but it counts as a step of the walk.
  const std::size_t walked = frames + (pointer == 0 ? 1 : 0);
  if (walked > max_frames || !has_room(calls_)) return "the stack is deeper than heaptrack records";
  calls_.push_back({static_cast<std::uint32_t>(pointer), static_cast<std::uint32_t>(around), static_cast<std::uint32_t>(walked)});
  return nullptr;
}

const std::vector<std::uint32_t>& heaptrack_stacks::operations_of(std::uint32_t stack) {
  expanded_.clear();
  bool is_complete = false;
  std::uint32_t outermost = no_name;  // of the library's frames
  for (; stack != 0 && !is_complete; stack = calls_[stack - 1].around) {
    if (calls_[stack - 1].pointer == 0) continue;
    const instruction& called = instructions_[calls_[stack - 1].pointer - 1];
    for (std::size_t index = called.first; index < called.first + called.count && !is_complete; ++index) {
      const name& found = names_[frames_[index]];
      is_complete = found.is_outermost;
      if (found.is_operator_new && expanded_.empty()) continue;
      if (found.is_library && kept_ == stack_frames::own) {
        outermost = frames_[index];
      } else {
        expanded_.push_back(frames_[index]);
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

std::string_view heaptrack_stacks::text(std::uint64_t string) const noexcept {
  if (string == 0) return {};
  const std::size_t begin = string == 1 ? 0 : string_ends_[string - 2];
  return std::string_view{strings_}.substr(begin, string_ends_[string - 1] - begin);
}

std::uint32_t heaptrack_stacks::frame(std::string_view function, std::string_view file, std::uint64_t line) {
  std::string text = frame_name(function.empty() ? "??" : function, file, line == 0 ? std::string{} : std::to_string(line));
  const auto [known, is_new] = ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(names_.size()));
  if (is_new) {
    const std::string bare = bare_function_name(function);
    names_.push_back({&known->first, bare == "operator new" || bare == "operator new[]", is_library_function(bare),
                      bare == "main" || bare == "__libc_start_main" || bare == "__static_initialization_and_destruction_0"});
  }
  return known->second;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
