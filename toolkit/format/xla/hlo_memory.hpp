#pragma once

#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

/// @file
/// An XLA program with everything that is known about its blocks. Needs protozero.

namespace memprof::inline MEMPROF_ABI {

namespace detail {
class protobuf_file;
}

/// A block, described for people.
struct hlo_block {
  std::string instruction;  ///< with the tuple element, as in "fusion.1{0}"
  std::string op_name;
  std::string opcode;
  std::string shape;
  std::string_view dtype;
  std::string source_file;
  std::int64_t source_line = 0;  ///< in `source_file`, if that is not empty
  std::string stack;             ///< "file:line:column", innermost first, one per line
  std::int64_t bytes = 0;
  std::int64_t unpadded_bytes = 0;
  hlo_group group = hlo_group::temporary;
};

/// A program and its memory needs.
class hlo_memory {
 public:
  /// Reads a serialized `HloProto` from the bytes of `file`, which must outlive this object. Throws `memprof::error`.
  hlo_memory(const detail::protobuf_file& file, std::string_view bytes);

  [[nodiscard]] const hlo_program& program() const noexcept { return program_; }
  [[nodiscard]] heap_simulation simulate(std::int64_t space) const { return simulate_heap(program_, space, unpadded_); }
  [[nodiscard]] std::int64_t unpadded(std::uint32_t buffer) const { return unpadded_[buffer]; }

  /// The description of a block. The buffer must have an allocation.
  [[nodiscard]] hlo_block block(std::uint32_t index) const;

 private:
  /// The tuple element given by the last number of the index alone, as in XLA's viewer.
  [[nodiscard]] std::string_view shape_of(const hlo_buffer& buffer) const;
  /// Many values may share one large shape: bounds the cost of a hostile file.
  [[nodiscard]] std::string_view counted(std::string_view shape) const;

  void tell_source(const hlo_instruction& of, hlo_block& made) const;
  [[nodiscard]] static bool is_index(std::int64_t from_one, std::size_t size) noexcept;

  const detail::protobuf_file* file_;
  hlo_program program_;
  std::vector<std::int64_t> unpadded_;
  // Not thread-safe.
  mutable std::unordered_map<std::uint32_t, std::vector<std::string_view>> tuples_;  ///< elements, by instruction
  mutable std::size_t shape_bytes_ = 0;                                              ///< read so far
  std::size_t program_bytes_;
};

}  // namespace memprof::inline MEMPROF_ABI
