#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>
#include <memprof/toolkit/format/xla/hlo_reader.hpp>
#include <memprof/toolkit/format/xla/hlo_shape.hpp>
#include <memprof/toolkit/format/xla/protobuf_file.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

hlo_memory::hlo_memory(const detail::protobuf_file& file, std::string_view bytes)
    : file_(&file), program_(read_hlo_program(file, bytes)), program_bytes_(bytes.size()) {
  unpadded_.reserve(program_.buffers.size());
  for (const hlo_buffer& buffer : program_.buffers) {
    unpadded_.push_back(buffer.instruction == hlo_none ? 0 : unpadded_bytes(read_hlo_shape(file, shape_of(buffer))));
  }
}

hlo_block hlo_memory::block(std::uint32_t index) const {
  const hlo_buffer& buffer = program_.buffers[index];
  const hlo_instruction& defining = program_.instructions[buffer.instruction];
  hlo_block made;
  made.instruction = defining.name;
  if (!buffer.shape_index.empty()) {
    made.instruction += '{';
    detail::append_numbers(made.instruction, buffer.shape_index);
    made.instruction += '}';
  }
  made.op_name = defining.op_name;
  made.opcode = defining.opcode;
  const std::string_view shape = shape_of(buffer);
  made.shape = hlo_shape_text(*file_, shape);
  made.dtype = element_type(read_hlo_shape(*file_, shape).type).name;
  tell_source(defining, made);
  made.bytes = buffer.bytes;
  made.unpadded_bytes = unpadded_[index];
  made.group = program_.allocations[buffer.allocation].group();
  return made;
}

std::string_view hlo_memory::shape_of(const hlo_buffer& buffer) const {
  const std::string_view whole = program_.instructions[buffer.instruction].shape;
  if (buffer.shape_index.empty()) return counted(whole);
  const auto [found, is_new] = tuples_.try_emplace(buffer.instruction);
  if (is_new) found->second = read_hlo_shape(*file_, whole).parts;
  const std::vector<std::string_view>& parts = found->second;
  const std::int64_t last = buffer.shape_index.back();
  const bool is_part = last >= 0 && static_cast<std::uint64_t>(last) < parts.size();
  return counted(is_part ? parts[static_cast<std::size_t>(last)] : whole);
}

std::string_view hlo_memory::counted(std::string_view shape) const {
  constexpr std::size_t usual_times = 16;  // about five are needed
  shape_bytes_ += shape.size();
  if (shape_bytes_ > (std::size_t{1} << 24) + usual_times * program_bytes_)
    file_->raise_at(shape.data(), "ShapeProto", "too many values have large shapes");
  return shape;
}

void hlo_memory::tell_source(const hlo_instruction& of, hlo_block& made) const {
  made.source_file = of.source_file;
  made.source_line = of.source_line;
  // Parents may form a cycle in a damaged file.
  constexpr int max_frames = 256;
  std::int64_t frame = of.stack_frame;
  for (int depth = 0; depth < max_frames && is_index(frame, program_.frames.size()); ++depth) {
    const hlo_frame& seen = program_.frames[static_cast<std::size_t>(frame - 1)];
    frame = seen.parent;
    if (!is_index(seen.location, program_.locations.size())) continue;
    const hlo_frame_location& at = program_.locations[static_cast<std::size_t>(seen.location - 1)];
    const std::string_view file =
        is_index(at.file, program_.files.size()) ? program_.files[static_cast<std::size_t>(at.file - 1)] : std::string_view{};
    if (made.source_file.empty()) {
      made.source_file = file;
      made.source_line = at.line;
    }
    if (!made.stack.empty()) made.stack += '\n';
    made.stack.append(file).append(":").append(std::to_string(at.line)).append(":").append(std::to_string(at.column));
  }
}

bool hlo_memory::is_index(std::int64_t from_one, std::size_t size) noexcept {
  return from_one >= 1 && static_cast<std::uint64_t>(from_one) <= size;
}

}  // namespace memprof::inline MEMPROF_ABI
