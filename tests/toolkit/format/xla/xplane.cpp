#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/format/protobuf_writer.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/hlo_shape.hpp>
#include <memprof/toolkit/format/xla/message.hpp>
#include <memprof/toolkit/format/xla/protobuf_file.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>
#include <memprof/toolkit/format/xla/xplane_trace.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace memprof_tests::format_xplane {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using message = memprof::detail::protobuf_message;
using memprof::detail::protobuf_file;
using memprof::detail::xla_message;

namespace {

constexpr std::uint64_t f32 = 11;
constexpr std::uint64_t bf16 = 16;

auto says(const char* text) { return MessageMatches(ContainsSubstring(text)); }

message array(std::uint64_t type, const std::vector<std::int64_t>& dimensions, const message& layout) {
  message made;
  made.integer(2, type).packed(3, dimensions).message(5, layout);
  return made;
}

std::string text_of(const message& shape) {
  const protobuf_file file{shape.bytes(), "shape"};
  return memprof::hlo_shape_text(file, shape.bytes());
}

std::int64_t bytes_of(const message& shape) {
  const protobuf_file file{shape.bytes(), "shape"};
  return memprof::unpadded_bytes(memprof::read_hlo_shape(file, shape.bytes()));
}

TEST_CASE("xla shapes: text is XLA's own") {
  const std::vector<std::int64_t> order{3, 2, 1, 0};
  message tiles;
  tiles.packed(1, order).message(6, message{}.packed(1, std::vector<std::int64_t>{8, 128}));
  CHECK(text_of(array(f32, {5, 1024, 1024, 256}, tiles)) == "f32[5,1024,1024,256]{3,2,1,0:T(8,128)}");
  message all;
  all.packed(1, std::vector<std::int64_t>{1, 0})
      .message(6, message{}.packed(1, std::vector<std::int64_t>{8, 128}))
      .message(6, message{}.packed(1, std::vector<std::int64_t>{2, std::numeric_limits<std::int64_t>::min()}))
      .integer(7, std::uint64_t{4})
      .integer(8, std::uint64_t{1})
      .integer(16, std::uint64_t{2});
  CHECK(text_of(array(bf16, {16, 128}, all)) == "bf16[16,128]{1,0:T(8,128)(2,*)L(2)E(4)S(1)}");
  CHECK(text_of(array(f32, {}, message{})) == "f32[]");
  CHECK(text_of(array(f32, {}, message{}.message(6, message{}.packed(1, std::vector<std::int64_t>{128})))) == "f32[]{:T(128)}");
  message dynamic = array(f32, {4, 9}, message{});
  dynamic.packed(6, std::vector<std::int64_t>{0, 1});
  CHECK(text_of(dynamic) == "f32[4,<=9]{}");
  message tuple;
  tuple.integer(2, std::uint64_t{13});
  for (int part = 0; part < 6; ++part) tuple.message(4, message{}.integer(2, f32));
  CHECK(text_of(tuple) == "(f32[], f32[], f32[], f32[], f32[], /*index=5*/f32[])");
}

TEST_CASE("xla shapes: bytes without padding") {
  CHECK(bytes_of(array(bf16, {3, 5}, message{})) == 30);
  CHECK(bytes_of(array(21, {3, 5}, message{})) == 15);  // four bits count as a byte
  CHECK(bytes_of(array(18, {}, message{})) == 16);
  CHECK(bytes_of(message{}.integer(2, std::uint64_t{17})) == 0);
  message tuple;
  tuple.integer(2, std::uint64_t{13}).message(4, message{}).message(4, message{});
  CHECK(bytes_of(tuple) == 16);
  CHECK(bytes_of(array(f32, {1LL << 40, 1LL << 40}, message{})) == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("xla shapes: nesting without end is an error") {
  message shape;
  for (int depth = 0; depth < 80; ++depth) {
    const message inner = shape;
    shape.clear();
    shape.integer(2, std::uint64_t{13}).message(4, inner);
  }
  CHECK_THROWS_MATCHES(text_of(shape), memprof::error, says("nested too deep"));
}

TEST_CASE("xla messages: fields of all wire types, in any order, packed or not") {
  message written;
  written.integer(3, std::int64_t{-5}).fixed64(900, 7).packed(4, std::vector<std::int64_t>{1, -2}).integer(4, std::int64_t{3});
  const protobuf_file file{written.bytes(), "file"};
  std::vector<std::int64_t> numbers;
  std::int64_t negative = 0;
  for (xla_message in{file, file.bytes(), "Message"}; in.next();) {
    if (in.field() == 3) negative = in.integer();
    if (in.field() != 4) continue;
    for (const std::int64_t number : in.integers()) numbers.push_back(number);
  }
  CHECK(negative == -5);
  CHECK(numbers == std::vector<std::int64_t>{1, -2, 3});
}

TEST_CASE("xla messages: what is wrong is an error with its byte") {
  const auto fault = [](const std::string& bytes) {
    const protobuf_file file{bytes, "file"};
    for (xla_message in{file, bytes, "Message"}; in.next();) {
      if (in.field() == 1) (void)in.integer();
      if (in.field() == 2) (void)in.text();
    }
  };
  using namespace std::string_literals;
  CHECK_THROWS_MATCHES(fault("\x08\x01\x0a\x00"s), memprof::error, says("'file': byte 2, in Message: field 1 is not a number"));
  CHECK_THROWS_MATCHES(fault("\x10\x01"s), memprof::error, says("byte 0, in Message: field 2 is not a string"));
  CHECK_THROWS_MATCHES(fault("\x08\x01\x12\x05"
                             "abc"s),
                       memprof::error, says("byte 2, in Message: field 2, of 5 bytes, extends past"));
  CHECK_THROWS_MATCHES(fault("\x08\xff"s), memprof::error, says("a number extends past the end"));
  CHECK_THROWS_MATCHES(fault("\x08" + std::string(11, '\xff')), memprof::error, says("longer than ten bytes"));
  CHECK_THROWS_MATCHES(fault("\x0b"s), memprof::error, says("unknown wire type 3"));
  CHECK_THROWS_MATCHES(fault("\x00"s), memprof::error, says("invalid field number 0"));
  CHECK_THROWS_MATCHES(fault("\x88\x80\x80\x80\x80\x01\x00"s), memprof::error,
                       says("byte 0, in Message: invalid field number: it has more than 32 bits"));
  CHECK_THROWS_MATCHES(fault(std::string(9, '\xff') + '\x01'), memprof::error, says("byte 0, in Message: invalid field number"));
  const std::string beyond =
      "\x08\x01\x12\x83\x80\x80\x80\x10"
      "abc"s;  // a length of 2^32 + 3
  CHECK_THROWS_MATCHES(fault(beyond), memprof::error,
                       says("byte 2, in Message: field 2, of 4294967299 bytes, extends past the end"));
  CHECK_THROWS_MATCHES(fault("\x11\x01"s), memprof::error, says("extends past the end"));
}

TEST_CASE("xla messages: packed numbers that are cut off are an error") {
  const auto fault = [](const std::string& bytes) {
    const protobuf_file file{bytes, "file"};
    for (xla_message in{file, bytes, "Message"}; in.next();) (void)in.integers();
  };
  using namespace std::string_literals;
  CHECK_THROWS_MATCHES(fault("\x22\x02\x01\xff"s), memprof::error, says("byte 0, in Message: a number extends past the end"));
  CHECK_THROWS_MATCHES(fault("\x22\x0b"s + std::string(11, '\xff')), memprof::error, says("varint longer than ten bytes"));
}

TEST_CASE("xla messages: a field that is cut off with the file has what is there") {
  message written;
  written.integer(3, std::int64_t{5}).message(1, message{}.integer(2, std::uint64_t{300}));
  const std::string cut = written.bytes().substr(0, written.bytes().size() - 1);
  const protobuf_file file{cut, "file"};
  xla_message in{file, cut, "Message", true};
  REQUIRE(in.next());
  CHECK(in.integer() == 5);
  REQUIRE(in.next());
  CHECK(in.is_cut());
  xla_message inner = in.message("Inner");
  CHECK_FALSE(inner.next());  // within its number
  CHECK(inner.is_cut());
  CHECK_FALSE(in.next());
}

TEST_CASE("xplane: operations of an op name, whose brackets hold together") {
  using path = std::vector<std::string_view>;
  CHECK(memprof::detail::path_of_op_name("jit(f)/while/body/dot") == path{"jit(f)", "while", "body", "dot"});
  CHECK(memprof::detail::path_of_op_name("jit(a/b)/c['d/e']//f") == path{"jit(a/b)", "c['d/e']", "f"});
  CHECK(memprof::detail::path_of_op_name("jit(a/b") == path{"jit(a/b"});
  CHECK(memprof::detail::path_of_op_name("").empty());
}

TEST_CASE("xplane: a program may be named with its number or without") {
  const memprof::xplane_program program{"jit_f(12)", 12, {}};
  CHECK(is_named(program, "jit_f"));
  CHECK(is_named(program, "jit_f("));
  CHECK(is_named(program, "jit_f(12)"));
  CHECK_FALSE(is_named(program, "jit_f(1"));
  CHECK_FALSE(is_named(program, "jit"));
}

TEST_CASE("xplane: files are told apart by their first bytes") {
  const memprof_tests::scratch_folder folder;
  const auto kind = [&](const std::string& bytes) {
    std::ofstream{folder.file("file"), std::ios::binary} << bytes;
    const memprof::detail::file_handle file{std::fopen(folder.file("file").c_str(), "rb")};
    return memprof::xplane_kind_of(file.get());
  };
  using memprof::xplane_kind;
  CHECK(kind(message{}.message(1, message{}.text(2, "/host:CPU")).bytes()) == xplane_kind::space);
  CHECK(kind(message{}.message(1, message{}.integer(1, std::uint64_t{3})).bytes()) == xplane_kind::space);
  CHECK(kind(message{}.message(1, message{}.text(1, "jit_f")).bytes()) == xplane_kind::program);
  CHECK(kind("\n\n\n\n{}") == xplane_kind::none);
  CHECK(kind("\n{\"a\": 1}") == xplane_kind::none);
  CHECK(kind("\n") == xplane_kind::none);
  CHECK(kind("") == xplane_kind::none);
}

TEST_CASE("xla classes: the default rules are those of the published procedure") {
  using memprof::hlo_group;
  const memprof::hlo_class_rules rules = memprof::default_hlo_class_rules();
  const auto name = [&](hlo_group group, std::string_view op_name) {
    const std::size_t found = memprof::class_of(rules, group, op_name);
    return found < rules.classes.size() ? rules.classes[found].name : std::string{};
  };
  CHECK(name(hlo_group::parameter, "init_carry[2]") == "kv_cache");
  CHECK(name(hlo_group::parameter, "init_carry[3]") == "kv_cache");
  CHECK(name(hlo_group::parameter, "init_carry[3][0]") == "other_carry_state");
  CHECK(name(hlo_group::parameter, "init_carry[12]") == "other_carry_state");
  CHECK(name(hlo_group::parameter, "params['w']") == "model_params");
  CHECK(name(hlo_group::parameter, "params[0]") == "other_parameter");
  CHECK(name(hlo_group::parameter, "") == "other_parameter");
  CHECK(name(hlo_group::output, "init_carry[2]").empty());
  const auto is_marked = [&](std::string_view text) { return memprof::detail::is_found(rules.markers, text); };
  CHECK(is_marked("jit(f)/GRADIENTS/mul"));
  CHECK(is_marked("adamant"));
  CHECK_FALSE(is_marked("grad_x"));
  CHECK_FALSE(is_marked("jit(f)/transpose(jvp(g))/mul"));
  CHECK_FALSE(is_marked(std::string(1 << 20, 'a')));
}

}  // namespace

}  // namespace memprof_tests::format_xplane
