#pragma once

#include <memprof/toolkit/format/function_name.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

/// @file
/// The tables of a heaptrack recording that say where allocations come from. Entries are numbered from 1 and refer to earlier
/// ones; 0 means none.

namespace memprof::inline MEMPROF_ABI::detail {

/// Parses the numbers of a line as heaptrack writes them: hexadecimal, without a prefix, separated by one space.
class heaptrack_numbers {
 public:
  explicit heaptrack_numbers(std::string_view text) noexcept : rest_(text) {}

  /// Parses the next number; false if there is none, or something else.
  [[nodiscard]] bool next(std::uint64_t& value) noexcept {
    const auto [end, fault] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, 16);
    const auto size = static_cast<std::size_t>(end - rest_.data());
    if (fault != std::errc{} || (size != rest_.size() && rest_[size] != ' ')) return false;
    rest_.remove_prefix(size == rest_.size() ? size : size + 1);
    return true;
  }
  /// The text not parsed yet.
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
};

/// Strings, instruction pointers with their inlined frames, and stacks.
///
/// A stack is expanded only on request, so that a short file cannot make it long: memory is proportional to the lines.
class heaptrack_stacks {
 public:
  /// The most frames of a stack: heaptrack records 64 calls, each with the functions inlined there.
  static constexpr std::size_t max_frames = 4096;
  /// The most operations that a stack becomes. A deeper one keeps its outermost frames and its innermost.
  static constexpr std::size_t max_operations = 256;

  explicit heaptrack_stacks(stack_frames frames) noexcept : kept_(frames) {}

  // Each of these takes a line without its kind, and returns what is wrong with it, or null.

  [[nodiscard]] const char* add_string(std::string_view text) {
    if (!has_room(string_ends_)) return "more strings than heaptrack can number";
    strings_ += text;
    string_ends_.push_back(strings_.size());
    return nullptr;
  }
  /// `ip module [function [file line [function file line]...]]`, the innermost frame first.
  [[nodiscard]] const char* add_instruction(std::string_view line) {
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
  /// `ip parent`: a call within the stack `parent`.
  [[nodiscard]] const char* add_stack(std::string_view line) {
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
    calls_.push_back(
        {static_cast<std::uint32_t>(pointer), static_cast<std::uint32_t>(around), static_cast<std::uint32_t>(walked)});
    return nullptr;
  }

  [[nodiscard]] bool contains(std::uint64_t stack) const noexcept { return stack <= calls_.size(); }

  /// The names of the operations that a stack stands for, outermost first: from `main`, or whatever else heaptrack takes for the
  /// start of a program, to the caller of `operator new` or of the library that called it. Valid until the next call.
  [[nodiscard]] const std::vector<std::uint32_t>& operations_of(std::uint32_t stack) {
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
  [[nodiscard]] std::string_view name_of(std::uint32_t operation) const noexcept { return *names_[operation].text; }

 private:
  struct instruction {
    std::uint32_t first;  ///< index of its first frame
    std::uint32_t count;
  };
  struct call {
    std::uint32_t pointer;
    std::uint32_t around;
    std::uint32_t frames;  ///< including those of the parent stack
  };
  struct name {
    const std::string* text;
    bool is_operator_new;
    bool is_library;
    bool is_outermost;
  };

  static constexpr std::uint32_t no_name = std::numeric_limits<std::uint32_t>::max();

  template <class Table>
  [[nodiscard]] static bool has_room(const Table& table) noexcept {
    return table.size() < std::numeric_limits<std::uint32_t>::max();
  }

  [[nodiscard]] std::string_view text(std::uint64_t string) const noexcept {
    if (string == 0) return {};
    const std::size_t begin = string == 1 ? 0 : string_ends_[string - 2];
    return std::string_view{strings_}.substr(begin, string_ends_[string - 1] - begin);
  }

  /// The number of a frame's name: `function (file:line)`, or `function (module)` without a file.
  [[nodiscard]] std::uint32_t frame(std::string_view function, std::string_view file, std::uint64_t line) {
    std::string text = frame_name(function.empty() ? "??" : function, file, line == 0 ? std::string{} : std::to_string(line));
    const auto [known, is_new] = ids_.try_emplace(std::move(text), static_cast<std::uint32_t>(names_.size()));
    if (is_new) {
      const std::string bare = short_function_name(function);
      names_.push_back({&known->first, bare == "operator new" || bare == "operator new[]", is_library_function(bare),
                        bare == "main" || bare == "__libc_start_main" || bare == "__static_initialization_and_destruction_0"});
    }
    return known->second;
  }

  stack_frames kept_;
  std::string strings_;  ///< concatenated: most are short, and there are many
  std::vector<std::size_t> string_ends_;
  std::vector<std::uint32_t> frames_;  ///< names, by instruction, innermost first
  std::vector<instruction> instructions_;
  std::vector<call> calls_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<name> names_;
  std::vector<std::uint32_t> expanded_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
