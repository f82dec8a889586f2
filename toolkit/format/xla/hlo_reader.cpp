#include <memprof/config.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>
#include <memprof/toolkit/format/xla/hlo_reader.hpp>
#include <memprof/toolkit/format/xla/message.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

class hlo_reader {
 public:
  [[nodiscard]] hlo_program read(const protobuf_file& file, std::string_view bytes) {
    xla_message in{file, bytes, "HloProto"};
    // Instructions came first in every file seen, but nothing guarantees it.
    std::vector<xla_message> assignments;
    while (in.next()) {
      if (in.field() == 1) read_module(in.message("HloModuleProto"));
      if (in.field() == 3) assignments.push_back(in.message("BufferAssignmentProto"));
    }
    for (const xla_message& assignment : assignments) read_logical_buffers(assignment);
    for (const xla_message& assignment : assignments) read_allocations(assignment);
    for (const xla_message& assignment : assignments) read_traces(assignment);
    return std::move(program_);
  }

 private:
  void read_module(xla_message in) {
    while (in.next()) {
      switch (in.field()) {
        case 1: program_.name = in.text(); break;
        case 2: program_.entry_computation = in.text(); break;
        case 3: read_computation(in.message("HloComputationProto")); break;
        case 17: read_frames(in.message("StackFrameIndexProto")); break;
        default: break;
      }
    }
  }

  void read_computation(xla_message in) {
    while (in.next()) {
      if (in.field() == 2) read_instruction(in.message("HloInstructionProto"));
    }
  }

  void read_instruction(xla_message in) {
    const auto index = static_cast<std::uint32_t>(program_.instructions.size());
    hlo_instruction& made = program_.instructions.emplace_back();
    std::int64_t id = 0;
    while (in.next()) {
      switch (in.field()) {
        case 1: made.name = in.text(); break;
        case 2: made.opcode = in.text(); break;
        case 3: made.shape = in.text(); break;
        case 7: read_metadata(in.message("OpMetadata"), made); break;
        case 35: id = in.integer(); break;
        default: break;
      }
    }
    instruction_of_id_.try_emplace(id, index);
    instruction_of_name_.try_emplace(made.name, index);
  }

  static void read_metadata(xla_message in, hlo_instruction& of) {
    while (in.next()) {
      switch (in.field()) {
        case 2: of.op_name = in.text(); break;
        case 3: of.source_file = in.text(); break;
        case 4: of.source_line = in.integer(); break;
        case 15: of.stack_frame = in.integer(); break;
        default: break;
      }
    }
  }

  void read_frames(xla_message in) {
    while (in.next()) {
      if (in.field() == 1) program_.files.push_back(in.text());
      if (in.field() == 3) {
        xla_message part = in.message("FileLocation");
        hlo_frame_location& made = program_.locations.emplace_back();
        while (part.next()) {
          switch (part.field()) {
            case 1: made.file = part.integer(); break;
            case 2: made.function = part.integer(); break;
            case 3: made.line = part.integer(); break;
            case 4: made.column = part.integer(); break;
            default: break;
          }
        }
      }
      if (in.field() == 4) {
        xla_message part = in.message("StackFrame");
        hlo_frame& made = program_.frames.emplace_back();
        while (part.next()) {
          if (part.field() == 1) made.location = part.integer();
          if (part.field() == 2) made.parent = part.integer();
        }
      }
    }
  }

  void read_logical_buffers(xla_message in) {
    while (in.next()) {
      if (in.field() == 1) read_logical_buffer(in.message("LogicalBufferProto"));
    }
  }

  void read_logical_buffer(xla_message in) {
    hlo_buffer made;
    while (in.next()) {
      switch (in.field()) {
        case 1: made.id = in.integer(); break;
        case 2: made.bytes = size_of(in); break;
        case 3: read_definition(in.message("LogicalBufferProto.Location"), made); break;
        case 4: made.space = in.integer(); break;
        default: break;
      }
    }
    const auto index = static_cast<std::uint32_t>(program_.buffers.size());
    if (buffer_of_id_.try_emplace(made.id, index).second) program_.buffers.push_back(std::move(made));
  }

  /// Old files have only the instruction's name.
  void read_definition(xla_message in, hlo_buffer& of) {
    std::string_view name;
    std::int64_t id = 0;
    while (in.next()) {
      switch (in.field()) {
        case 2: name = in.text(); break;
        case 3:
          for (const std::int64_t part : in.integers()) of.shape_index.push_back(part);
          break;
        case 4: id = in.integer(); break;
        default: break;
      }
    }
    of.instruction = found(instruction_of_id_, id);
    if (id == 0 && !name.empty()) of.instruction = found(instruction_of_name_, name);
  }

  void read_allocations(xla_message in) {
    while (in.next()) {
      if (in.field() == 3) read_allocation(in.message("BufferAllocationProto"));
    }
  }

  void read_traces(xla_message in) {
    while (in.next()) {
      if (in.field() == 4) read_trace(in.message("HeapSimulatorTrace"));
    }
  }

  void read_allocation(xla_message in) {
    const auto index = static_cast<std::uint32_t>(program_.allocations.size());
    hlo_allocation& made = program_.allocations.emplace_back();
    while (in.next()) {
      switch (in.field()) {
        case 1: made.index = in.integer(); break;
        case 2: made.bytes = size_of(in); break;
        case 3: made.is_thread_local = in.boolean(); break;
        case 5: made.is_parameter = in.boolean(); break;
        case 7: made.may_be_output = in.boolean(); break;
        case 8: made.space = in.integer(); break;
        case 9: read_assigned(in.message("BufferAllocationProto.Assigned"), made, index); break;
        case 11: made.is_tuple = in.boolean(); break;
        case 12: made.is_constant = in.boolean(); break;
        default: break;
      }
    }
  }

  void read_assigned(xla_message in, hlo_allocation& to, std::uint32_t allocation) {
    std::int64_t id = 0;
    std::int64_t offset = 0;
    while (in.next()) {
      if (in.field() == 1) id = in.integer();
      if (in.field() == 2) offset = size_of(in);
    }
    const std::uint32_t buffer = found(buffer_of_id_, id);
    // XLA's viewer, too, ignores a buffer whose instruction is unknown.
    if (buffer == hlo_none || program_.buffers[buffer].instruction == hlo_none) {
      ++program_.unknown_values;
      return;
    }
    to.buffers.push_back(buffer);
    program_.buffers[buffer].allocation = allocation;
    program_.buffers[buffer].offset = offset;
  }

  void read_trace(xla_message in) {
    std::vector<hlo_heap_event>& events = program_.traces.emplace_back();
    while (in.next()) {
      if (in.field() == 1) read_event(in.message("HeapSimulatorTrace.Event"), events.emplace_back());
    }
  }

  void read_event(xla_message in, hlo_heap_event& made) {
    std::int64_t id = 0;
    std::int64_t shared = 0;
    while (in.next()) {
      switch (in.field()) {
        case 1:
          if (in.unsigned_integer() > 2) in.fail("unknown kind of event " + std::to_string(in.unsigned_integer()));
          made.kind = static_cast<hlo_heap_event_kind>(in.unsigned_integer());
          break;
        case 2: id = in.integer(); break;
        case 4: made.instruction = in.text(); break;
        case 5: shared = in.integer(); break;
        default: break;
      }
    }
    made.buffer = assigned(id);
    if (made.kind == hlo_heap_event_kind::share) made.shared = assigned(shared);
  }

  [[nodiscard]] std::uint32_t assigned(std::int64_t id) const {
    const std::uint32_t buffer = found(buffer_of_id_, id);
    return buffer == hlo_none || program_.buffers[buffer].allocation == hlo_none ? hlo_none : buffer;
  }

  [[nodiscard]] static std::int64_t size_of(const xla_message& in) {
    constexpr std::int64_t most = std::int64_t{1} << 50;  // a million GiB
    const std::int64_t bytes = in.integer();
    if (bytes < 0 || bytes > most) in.fail(std::to_string(bytes) + " is not a valid number of bytes");
    return bytes;
  }

  template <class Map, class Key>
  [[nodiscard]] static std::uint32_t found(const Map& map, const Key& key) {
    const auto place = map.find(key);
    return place == map.end() ? hlo_none : place->second;
  }

  hlo_program program_;
  std::unordered_map<std::int64_t, std::uint32_t> instruction_of_id_;
  std::unordered_map<std::string_view, std::uint32_t> instruction_of_name_;
  std::unordered_map<std::int64_t, std::uint32_t> buffer_of_id_;
};

}  // namespace

}  // namespace detail

hlo_program read_hlo_program(const detail::protobuf_file& file, std::string_view bytes) {
  return detail::hlo_reader{}.read(file, bytes);
}

}  // namespace memprof::inline MEMPROF_ABI
