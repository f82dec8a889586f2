#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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

/// Strings, instruction pointers with their inlined frames, and stacks: memory is proportional to the lines.
class heaptrack_stacks {
 public:
  /// The most frames of a stack: heaptrack records 64 calls, each with the functions inlined there.
  static constexpr std::size_t max_frames = 4096;

  /// A function, with numbers of strings.
  struct frame {
    std::uint32_t function;
    std::uint32_t file;
    std::uint32_t line;  ///< 0: unknown
  };
  /// A return address.
  struct instruction {
    std::uint64_t address;
    std::uint32_t module;  ///< the number of its path
    std::uint32_t first;   ///< index of its innermost frame; those around it follow
    std::uint32_t count;
  };
  /// The innermost call of a stack.
  struct call {
    std::uint32_t pointer;  ///< the number of its instruction; 0: at an unknown address
    std::uint32_t around;   ///< the number of the stack it is in; 0: none
    std::uint32_t frames;   ///< including those of the parent stack
    std::uint32_t depth;    ///< return addresses, including those of the parent stack
  };

  // Each of these takes a line without its kind, and returns what is wrong with it, or null.

  [[nodiscard]] const char* add_string(std::string_view text);
  /// `ip module [function [file line [function file line]...]]`, the innermost frame first.
  [[nodiscard]] const char* add_instruction(std::string_view line);
  /// `ip parent`: a call within the stack `parent`.
  [[nodiscard]] const char* add_stack(std::string_view line);

  [[nodiscard]] bool contains(std::uint64_t stack) const noexcept { return stack <= calls_.size(); }

  [[nodiscard]] std::size_t frame_count() const noexcept { return frames_.size(); }
  [[nodiscard]] std::size_t instruction_count() const noexcept { return instructions_.size(); }
  [[nodiscard]] std::size_t stack_count() const noexcept { return calls_.size(); }

  // These take numbers that exist.

  [[nodiscard]] const call& innermost(std::uint32_t stack) const noexcept { return calls_[stack - 1]; }
  [[nodiscard]] const instruction& pointer(std::uint32_t number) const noexcept { return instructions_[number - 1]; }
  [[nodiscard]] const frame& frame_at(std::uint32_t index) const noexcept { return frames_[index]; }
  /// Empty for 0.
  [[nodiscard]] std::string_view text(std::uint32_t string) const noexcept;

 private:
  std::string strings_;  ///< concatenated: most are short, and there are many
  std::vector<std::size_t> string_ends_;
  std::vector<frame> frames_;  ///< by instruction, innermost first
  std::vector<instruction> instructions_;
  std::vector<call> calls_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
