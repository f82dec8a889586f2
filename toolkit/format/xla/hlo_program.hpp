#pragma once

#include <memprof/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// @file
/// What a compiled XLA program says about its memory: the part of `xla.HloProto` that XLA's viewer takes as given. All texts
/// refer to the file.

namespace memprof::inline MEMPROF_ABI {

/// "No index" into the vectors of `hlo_program`.
inline constexpr std::uint32_t hlo_none = 0xFFFF'FFFFU;

struct hlo_instruction {
  std::string_view name;
  std::string_view opcode;
  std::string_view shape;    ///< a `ShapeProto`: see `hlo_shape`
  std::string_view op_name;  ///< the framework's name: in JAX the path of the traced call, or the argument
  std::string_view source_file;
  std::int64_t source_line = 0;
  std::int64_t stack_frame = 0;  ///< index into `hlo_program::frames`, from 1; 0: none
};

/// A value of the program that needs memory.
struct hlo_buffer {
  std::int64_t id = 0;
  std::int64_t bytes = 0;  ///< including padding
  std::int64_t space = 0;  ///< the "color": 0 is the device's main memory
  std::uint32_t instruction = hlo_none;
  std::vector<std::int64_t> shape_index;  ///< the element of a tuple; empty: the whole value
  std::uint32_t allocation = hlo_none;    ///< the one that contains it; none: no allocation does, and the buffer is ignored
  std::int64_t offset = 0;                ///< from the start of the allocation
};

/// Why a block is live; the first that applies counts.
enum class hlo_group : std::uint8_t { parameter, output, thread_local_memory, constant, temporary };

/// The name of a group as XLA's viewer spells it.
[[nodiscard]] constexpr std::string_view to_string(hlo_group group) noexcept {
  constexpr std::string_view names[] = {"Parameter", "Output", "Thread-local", "Constant", "Temporary"};
  return names[static_cast<std::size_t>(group)];
}

/// A range of memory taken by the program.
struct hlo_allocation {
  std::int64_t index = 0;
  std::int64_t bytes = 0;
  std::int64_t space = 0;
  bool is_parameter = false;  ///< of the entry computation
  bool may_be_output = false;
  bool is_thread_local = false;
  bool is_constant = false;
  bool is_tuple = false;
  std::vector<std::uint32_t> buffers;  ///< those inside it, in the order of the file

  /// Whether it lives as long as the program runs, outside every simulation.
  [[nodiscard]] bool is_indefinite() const noexcept { return is_parameter || is_constant || may_be_output; }
  [[nodiscard]] hlo_group group() const noexcept {
    return is_parameter      ? hlo_group::parameter
           : may_be_output   ? hlo_group::output
           : is_thread_local ? hlo_group::thread_local_memory
           : is_constant     ? hlo_group::constant
                             : hlo_group::temporary;
  }
};

enum class hlo_heap_event_kind : std::uint8_t { allocate, free, share };

/// An event of the compiler's heap simulation.
struct hlo_heap_event {
  hlo_heap_event_kind kind = hlo_heap_event_kind::allocate;
  std::uint32_t buffer = hlo_none;  ///< none: no buffer has its id
  std::uint32_t shared = hlo_none;  ///< the buffer whose memory `buffer` takes over, if it is shared
  std::string_view instruction;
};

struct hlo_frame_location {
  std::int64_t file = 0;  ///< from 1, like the next
  std::int64_t function = 0;
  std::int64_t line = 0;
  std::int64_t column = 0;
};
struct hlo_frame {
  std::int64_t location = 0;  ///< from 1, like the next
  std::int64_t parent = 0;
};

struct hlo_program {
  std::string_view name;
  std::string_view entry_computation;
  std::vector<hlo_instruction> instructions;
  std::vector<hlo_buffer> buffers;
  std::vector<hlo_allocation> allocations;
  std::uint64_t unknown_values = 0;  ///< in allocations but not among `buffers`, or without an instruction
  std::vector<std::vector<hlo_heap_event>> traces;
  std::vector<std::string_view> files;
  std::vector<hlo_frame_location> locations;
  std::vector<hlo_frame> frames;
};

}  // namespace memprof::inline MEMPROF_ABI
