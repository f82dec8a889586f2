#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/format/source_frame.hpp>
#include <memprof/toolkit/symbols/call_stacks.hpp>
#include <memprof/toolkit/symbols/symbolizer.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// "train (model.cpp:42)", "train", or "libmodel.so+0x1234" where no name is known.
[[nodiscard]] std::string to_text(const source_frame& call);

/// Who asked for a block, from its calls, innermost first, without the hook's: the function that is not of a library of C++ or C,
/// and what of these it called: "std::vector::reserve in train (model.cpp:42)". In Python, the function that is neither of torch
/// nor of Python's own library: "Model.forward (train.py:42)".
[[nodiscard]] std::string caller_of(const std::vector<source_frame>& calls);

/// The stacks of a trace in words.
class named_stacks {
 public:
  /// `names` are the trace's, and must outlive it.
  explicit named_stacks(extend::name_view names) noexcept : stacks_(names) {}

  /// The calls, innermost first, with those that were inlined, without the hook's own; empty if there is no such stack.
  [[nodiscard]] std::vector<source_frame> calls(extend::label stack);
  /// The same, as a list for each return address: the functions that were inlined there are together.
  [[nodiscard]] std::vector<std::vector<source_frame>> frames(extend::label stack);
  /// The texts of the calls, outermost first, as flame graphs show them.
  [[nodiscard]] std::vector<std::string> texts(extend::label stack);
  /// `caller_of` these; empty if there are none.
  [[nodiscard]] std::string caller(extend::label stack);

 private:
  template <class IsLast>
  [[nodiscard]] std::vector<source_frame> calls_until(extend::label stack, IsLast is_last);
  [[nodiscard]] const std::vector<source_frame>& calls_at(const detail::stack_frame& frame);
  /// How many of a stack's innermost frames have no name and lead to a function of `malloc`'s family in the same file: the hook
  /// of a stripped program.
  [[nodiscard]] std::ptrdiff_t unnamed_hook_frames(const std::vector<detail::stack_frame>& frames);

  call_stacks stacks_;
  symbolizer symbols_;
  std::map<std::pair<extend::label, std::uint64_t>, std::vector<source_frame>> known_calls_;
  std::unordered_map<extend::label, std::string> known_callers_;
};

/// `named_stacks::texts` as a function, of the names that it is first called with. Nothing is looked up before.
[[nodiscard]] std::function<std::vector<std::string>(extend::name_view names, extend::label stack)> calls_by_name();

/// `named_stacks::frames` in the same way.
[[nodiscard]] std::function<std::vector<std::vector<source_frame>>(extend::name_view names, extend::label stack)>
frames_by_name();

}  // namespace memprof::inline MEMPROF_ABI
