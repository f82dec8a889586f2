#include "trace_records.hpp"

#include <memprof/trace/coding.hpp>
#include <memprof/trace/decoder.hpp>
#include <memprof/trace/encoder.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/stack_name.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace memprof_tests::trace_stack_name {

using memprof::detail::module_text;
using memprof::detail::stack_frame;
using memprof::detail::stack_part;
using memprof::detail::stack_text;
using memprof::detail::stack_text_reader;
using memprof::detail::trace_decoder;
using memprof::detail::trace_encoder;
using memprof::extend::event;
using memprof::extend::event_kind;

std::vector<stack_frame> frames_of(std::string_view text) {
  stack_text_reader in{text};
  std::vector<stack_frame> frames;
  for (stack_frame frame; in.next(frame);) frames.push_back(frame);
  return frames;
}

TEST_CASE("stack_name: frames come back as they were, in modules and out of them") {
  const std::vector<stack_frame> frames{{7, 0x1234}, {7, 0x1200}, {9, 0x7FFF'FFFF'FFFF}, {0, 0x7F00'0000'1000}, {7, 0}};
  stack_text text{{5, 3}};
  for (const stack_frame& frame : frames) text.add(frame);
  const stack_text_reader in{text.view()};
  CHECK(in.outer() == stack_part{5, 3});
  CHECK(in.inner() == stack_part{});
  CHECK(frames_of(text.view()) == frames);
}

TEST_CASE("stack_name: the bytes are those of docs/trace_format.md") {
  stack_text text{{}};
  text.add({7, 2});
  text.add({7, 1});
  // No stack that it shares frames with; 2 in another module, 7; 1 less, in the same.
  CHECK(text.view() == std::string_view{"\x00\x00\x09\x07\x02", 5});
}

TEST_CASE("stack_name: a stack may share frames with two others, as in docs/trace_format.md") {
  stack_text text{{5, 3}, {6, 9}};
  text.add({7, 2});
  // The outermost 3 of the stack 5, the innermost 9 (9 * 128 + 3 = 1155 = 9 * 128 + 3) of the stack 6; between them one frame.
  CHECK(text.view() == std::string_view{"\x05\x83\x09\x06\x09\x07", 6});
  stack_text_reader in{text.view()};
  CHECK(in.outer() == stack_part{5, 3});
  CHECK(in.inner() == stack_part{6, 9});
  CHECK(frames_of(text.view()) == std::vector<stack_frame>{{7, 2}});
}

TEST_CASE("stack_name: a text of before, which names no inner frames, is read as it was meant") {
  // The outermost 64 frames of the stack 300, and one more, at 0x10 in module 7: 0x10 in zigzag, doubled, plus 1 is 0x41.
  const stack_text_reader in{std::string_view{"\xAC\x02\x40\x41\x07", 5}};
  CHECK(in.outer() == stack_part{300, 64});
  CHECK(in.inner() == stack_part{});
  CHECK_FALSE(in.has_failed());
  CHECK(frames_of({"\xAC\x02\x40\x41\x07", 5}) == std::vector<stack_frame>{{7, 0x10}});
}

TEST_CASE("stack_name: numbers that no writer gives are damage") {
  CHECK(stack_text_reader{std::string_view{"\xFF\xFF\xFF\xFF\x10\x00", 6}}.has_failed());          // a name beyond 32 bits
  CHECK(stack_text_reader{std::string_view{"\x00\x80\x01\xFF\xFF\xFF\xFF\x10", 8}}.has_failed());  // the same
  CHECK(stack_text_reader{std::string_view{"\x00\x80\x80\x01\x02", 5}}.has_failed());              // 128 innermost frames
  CHECK(stack_text_reader{std::string_view{"\x00\x80\x01", 3}}.has_failed());                      // whose stack is missing
}

TEST_CASE("stack_name: the longest stack fits, and an address of the kernel's is cut") {
  stack_text text{{~memprof::extend::label{0}, 64}, {~memprof::extend::label{0}, 64}};
  for (std::uint32_t index = 0; index < memprof::detail::max_stack_frames; ++index)
    text.add({~index, index % 2 == 0 ? ~std::uint64_t{0} : 0});
  const std::vector<stack_frame> frames = frames_of(text.view());
  REQUIRE(frames.size() == 64);
  CHECK(frames[0] == stack_frame{~std::uint32_t{0}, stack_text::offset_bits});
  CHECK(frames[63] == stack_frame{~std::uint32_t{63}, 0});
}

TEST_CASE("stack_name: a text that is cut off has the frames before that") {
  stack_text text{{}};
  text.add({7, 0x1000});
  text.add({8, 0x2000});
  CHECK(frames_of(text.view().substr(0, text.view().size() - 1)) == std::vector<stack_frame>{{7, 0x1000}});
  CHECK(frames_of({}).empty());
}

TEST_CASE("stack_name: a module's text has its path, build-id and address; what is missing is empty") {
  const module_text whole = module_text::of(
      "/usr/lib/libc.so.6\x1f"
      "ab12\x1f"
      "7f0000");
  CHECK(whole.path == "/usr/lib/libc.so.6");
  CHECK(whole.build_id == "ab12");
  CHECK(whole.loaded_at == "7f0000");
  const module_text bare = module_text::of("[vdso]");
  CHECK(bare.path == "[vdso]");
  CHECK(bare.build_id.empty());
  CHECK(bare.loaded_at.empty());
}

struct collected_events {
  std::vector<event> all;
  void events(const event* first, const event* last, std::uint32_t) { all.insert(all.end(), first, last); }
  void definition(memprof::detail::control, std::string_view) {}
};

TEST_CASE("stack_name: the free of a block with a stack takes two bytes, and so does the next block with that stack") {
  const std::vector<event> written{
      {0, 0x10000, 100, 77, event_kind::allocate, 0, 0}, {0, 0x10000, 0, 0, event_kind::deallocate, 0, 0},
      {0, 0x10000, 100, 77, event_kind::allocate, 0, 0}, {0, 0x10000, 100, 0, event_kind::deallocate, 0, 0},
      {0, 0x10000, 100, 78, event_kind::allocate, 0, 0}, {0, 0x10000, 0, 0, event_kind::deallocate, 0, 0}};
  std::vector<unsigned char> bytes(4096);
  const auto encoder = std::make_unique<trace_encoder>();
  encoder->restart();
  memprof::detail::encoded_bytes out{bytes.data(), bytes.data() + bytes.size()};
  std::vector<std::ptrdiff_t> lengths;
  for (const event& each : written) {
    const unsigned char* const before = out.next;
    REQUIRE(encoder->encode(&each, &each + 1, 1, out) == &each + 1);
    lengths.push_back(out.next - before);
  }
  CHECK(std::vector<std::ptrdiff_t>(lengths.begin() + 1, lengths.begin() + 4) == std::vector<std::ptrdiff_t>{2, 2, 2});
  CHECK(lengths[5] == 2);
  const auto decoder = std::make_unique<trace_decoder>();
  decoder->restart();
  collected_events read;
  CHECK(decoder->decode(bytes.data(), out.next, read) == out.next);
  CHECK(read.all == written);
}

}  // namespace memprof_tests::trace_stack_name
