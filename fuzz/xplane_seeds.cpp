// xplane_seeds FOLDER: writes the seeds for fuzzing XLA profiles: a program and a profile with everything that is read.
#include <memprof/toolkit/format/protobuf_writer.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using message = memprof::detail::protobuf_message;
using numbers = std::vector<std::int64_t>;

message shape_of(std::int64_t size) {
  message layout;
  layout.packed(1, numbers{1, 0}).message(6, message{}.packed(1, numbers{8, 128})).integer(7, std::uint64_t{4});
  layout.integer(8, std::uint64_t{1}).packed(9, numbers{0, 1}).message(10, message{}.integer(2, std::uint64_t{11}));
  layout.integer(11, std::uint64_t{4}).integer(12, std::uint64_t{8}).integer(15, std::uint64_t{64});
  layout.integer(16, std::uint64_t{2}).message(17, message{}.integer(1, std::uint64_t{1}).packed(2, numbers{3, 4}));
  message array;
  array.integer(2, std::uint64_t{11}).packed(3, numbers{size, 64}).message(5, layout).packed(6, numbers{0, 1});
  message tuple;
  return tuple.integer(2, std::uint64_t{13}).message(4, array).message(4, array);
}

message program() {
  message computation;
  message assignment;
  message trace;
  for (std::int64_t index = 1; index <= 6; ++index) {
    const std::string name = "fusion." + std::to_string(index);
    message metadata;
    metadata.text(2, index % 2 == 0 ? "jit(f)/while/body/dot" : "params['w']").text(3, "train.py").integer(4, index);
    metadata.integer(15, std::uint64_t{1});
    message instruction;
    instruction.text(1, name).text(2, "fusion").message(3, shape_of(100 * index)).message(7, metadata).integer(35, index << 32);
    computation.message(2, instruction);
    message place;
    place.packed(3, numbers{index % 2}).integer(4, index << 32);
    message buffer;
    buffer.integer(1, index).integer(2, 20'000 * index).message(3, place).integer(4, std::int64_t{index == 6});
    assignment.message(1, buffer);
  }
  for (std::int64_t index = 1; index <= 4; ++index) {
    message allocation;
    allocation.integer(1, index).integer(2, 60'000 * index).integer(8, std::int64_t{index == 4});
    if (index < 3) allocation.integer(static_cast<std::uint32_t>(index == 1 ? 5 : 7), std::uint64_t{1});
    for (const std::int64_t held : index == 3 ? numbers{3, 4, 5} : numbers{index == 4 ? 6 : index}) {
      allocation.message(9, message{}.integer(1, held).integer(2, 1'000 * held).integer(3, 20'000 * held));
    }
    assignment.message(3, allocation);
  }
  const auto happens = [&](std::int64_t kind, std::int64_t buffer, std::int64_t shared = 0) {
    trace.message(1, message{}.integer(1, kind).integer(2, buffer).text(4, "fusion").integer(5, shared));
  };
  happens(0, 3);
  happens(0, 4);
  happens(2, 5, 3);
  happens(1, 3);
  happens(1, 5);
  happens(2, 5, 3);
  assignment.message(4, trace).message(4, message{}.message(1, message{}.integer(2, std::uint64_t{6})));
  message frames;
  frames.text(1, "train.py").text(2, "main").message(3, message{}.integer(1, std::uint64_t{1}).integer(3, std::uint64_t{7}));
  frames.message(4, message{}.integer(1, std::uint64_t{1}));
  message module;
  module.text(1, "jit_f").text(2, "main").message(3, computation).message(17, frames);
  return message{}.message(1, module).message(3, assignment);
}

message profile() {
  const auto named = [](std::int64_t key, const message& value) { return message{}.integer(1, key).message(2, value); };
  message metadata;
  for (const std::int64_t key : {-5, 3}) {
    message stat;
    stat.integer(1, std::uint64_t{7}).message(6, program());
    metadata.message(4, named(key, message{}.integer(1, key).text(2, "jit_f(3)").message(5, stat)));
  }
  metadata.text(2, "/host:metadata").message(5, named(7, message{}.text(2, "Hlo Proto")));
  message line;
  line.text(2, "XLA Modules").message(4, message{}.integer(1, std::uint64_t{1}).integer(3, std::uint64_t{5}));
  message tpu;
  tpu.integer(1, std::uint64_t{2}).text(2, "/device:TPU:0").message(3, line).message(4, named(1, message{}.text(2, "jit_f(3)")));
  return message{}.message(1, tpu).message(1, metadata).text(4, "host");
}

}  // namespace

int main(int count, char** arguments) {
  const std::filesystem::path folder = count > 1 ? arguments[1] : "xplane_seeds";
  std::filesystem::create_directories(folder);
  // The last byte determines the meaning of the others.
  std::ofstream{folder / "program.hlo_proto.pb", std::ios::binary} << program().bytes() << '\2';
  std::ofstream{folder / "program", std::ios::binary} << program().bytes() << '\1';
  std::ofstream{folder / "profile.xplane.pb", std::ios::binary} << profile().bytes() << '\2';
}
