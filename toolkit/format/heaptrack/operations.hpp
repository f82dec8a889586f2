#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/heaptrack/stacks.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The stacks of a heaptrack recording as operations. A stack is expanded only on request, so that a short file cannot make it
/// long.
class heaptrack_operations {
 public:
  /// The most operations that a stack becomes. A deeper one keeps its outermost frames and its innermost.
  static constexpr std::size_t max_operations = 256;

  heaptrack_operations(const heaptrack_stacks& stacks, stack_frames frames) noexcept : stacks_(stacks), kept_(frames) {}

  /// The names of the operations that a stack stands for, outermost first: from `main`, or whatever else heaptrack takes for the
  /// start of a program, to the caller of `operator new` or of the library that called it. Valid until the next call.
  [[nodiscard]] const std::vector<std::uint32_t>& operations_of(std::uint32_t stack);
  [[nodiscard]] std::string_view name_of(std::uint32_t operation) const noexcept { return *names_[operation].text; }

 private:
  struct name {
    const std::string* text;
    bool is_operator_new;
    bool is_library;
    bool is_outermost;
  };

  static constexpr std::uint32_t no_name = std::numeric_limits<std::uint32_t>::max();

  /// The number of a frame's name: `function (file:line)`, or `function (module)` without a file.
  [[nodiscard]] std::uint32_t name_of_frame(std::uint32_t index, std::uint32_t module);

  const heaptrack_stacks& stacks_;
  stack_frames kept_;
  std::vector<std::uint32_t> of_frame_;  ///< by frame; `no_name`: not named yet
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<name> names_;
  std::vector<std::uint32_t> expanded_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
