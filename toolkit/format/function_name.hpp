#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

/// @file
/// How readers of other tools' recordings name operations after stack frames.

namespace memprof::inline MEMPROF_ABI {

/// Which frames of a recorded stack become operations.
enum class stack_frames : std::uint8_t {
  own,  ///< without functions of the C++ standard library and allocators, so that a block belongs to who asked for it
  all
};

}  // namespace memprof::inline MEMPROF_ABI

namespace memprof::inline MEMPROF_ABI::detail {

/// The name of a C++ function as a person would write it: without its parameters, its result and the arguments of templates that
/// nobody writes (allocators, comparators, hashes); `std::vector<double>::emplace_back`. Lists of template arguments above 32
/// characters are `<...>`, with one character for the dots; the function's own are left out if they are above 24, or if it is of
/// the standard library or an operator. Python names stay as they are.
[[nodiscard]] std::string short_function_name(std::string_view name);

/// The same without any template arguments: `std::vector::emplace_back`.
[[nodiscard]] std::string bare_function_name(std::string_view name);

/// Whether the function with this bare name is of the C++ standard library, or allocates for whoever calls it: a frame that does
/// not say who asked for memory.
[[nodiscard]] bool is_library_function(std::string_view name);

/// The operation of a stack frame: `function (file:line)`, with the file's base name and a short function name. An empty file and
/// "??" are left out.
[[nodiscard]] std::string frame_name(std::string_view function, std::string_view file, std::string_view line);

}  // namespace memprof::inline MEMPROF_ABI::detail
