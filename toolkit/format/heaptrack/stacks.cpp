#include <memprof/config.hpp>
#include <memprof/toolkit/format/heaptrack/stacks.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <system_error>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

constexpr std::uint64_t longest_file = std::numeric_limits<std::int32_t>::max();  // in lines

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
  instruction added{address, 0, static_cast<std::uint32_t>(frames_.size()), 0};
  do {
    std::uint64_t function = 0;
    std::uint64_t file = 0;
    std::uint64_t number = 0;
    if (!numbers.rest().empty() && !numbers.next(function)) return expected;
    if (!numbers.rest().empty() && (!numbers.next(file) || !numbers.next(number))) return expected;
    if (std::max({module, function, file}) > string_ends_.size()) return "a string is not defined above";
    if (!has_room(frames_) || ++added.count > max_frames) return "more frames than a stack can have";
    frames_.push_back({static_cast<std::uint32_t>(function), static_cast<std::uint32_t>(file),
                       static_cast<std::uint32_t>(file == 0 ? 0 : std::min(number, longest_file))});
  } while (!numbers.rest().empty());
  if (!has_room(instructions_)) return "more instruction pointers than heaptrack can number";
  added.module = static_cast<std::uint32_t>(module);
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
  const call outer = around == 0 ? call{} : calls_[around - 1];
  const std::size_t frames = outer.frames + (pointer == 0 ? 0 : instructions_[pointer - 1].count);
  // A call at an unknown address has no frame, but it counts as a step of the walk.
  const std::size_t walked = frames + (pointer == 0 ? 1 : 0);
  if (walked > max_frames || !has_room(calls_)) return "the stack is deeper than heaptrack records";
  calls_.push_back({static_cast<std::uint32_t>(pointer), static_cast<std::uint32_t>(around), static_cast<std::uint32_t>(walked),
                    outer.depth + (pointer == 0 ? 0 : 1)});
  return nullptr;
}

std::string_view heaptrack_stacks::text(std::uint32_t string) const noexcept {
  if (string == 0) return {};
  const std::size_t begin = string == 1 ? 0 : string_ends_[string - 2];
  return std::string_view{strings_}.substr(begin, string_ends_[string - 1] - begin);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
