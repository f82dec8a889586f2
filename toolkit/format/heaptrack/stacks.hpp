#pragma once

#include <memprof/toolkit/format/function_name.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
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
  [[nodiscard]] bool next(std::uint64_t& value) noexcept;
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

  [[nodiscard]] const char* add_string(std::string_view text);
  /// `ip module [function [file line [function file line]...]]`, the innermost frame first.
  [[nodiscard]] const char* add_instruction(std::string_view line);
  /// `ip parent`: a call within the stack `parent`.
  [[nodiscard]] const char* add_stack(std::string_view line);

  [[nodiscard]] bool contains(std::uint64_t stack) const noexcept { return stack <= calls_.size(); }

  /// The names of the operations that a stack stands for, outermost first: from `main`, or whatever else heaptrack takes for the
  /// start of a program, to the caller of `operator new` or of the library that called it. Valid until the next call.
  [[nodiscard]] const std::vector<std::uint32_t>& operations_of(std::uint32_t stack);
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

  [[nodiscard]] std::string_view text(std::uint64_t string) const noexcept;

  /// The number of a frame's name: `function (file:line)`, or `function (module)` without a file.
  [[nodiscard]] std::uint32_t frame(std::string_view function, std::string_view file, std::uint64_t line);

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
