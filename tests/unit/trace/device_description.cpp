#include <memprof/trace/device_description.hpp>
#include <memprof/trace/device_presets.hpp>
#include <memprof/trace/tensor_bytes.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace memprof_tests::trace_device_description {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::bytes_per_bank;
using memprof::device_description;
using memprof::device_preset;
using memprof::dtype;
using memprof::tensor_layout;

static_assert(std::is_trivially_copyable_v<device_description>, "it is kept where no allocation may happen");

namespace {

device_description device_with(tensor_layout layout, std::int64_t size_multiple = 1) {
  device_description device;
  device.name = "test";
  device.layout = layout;
  device.add({.name = "memory", .size_multiple = size_multiple});
  return device;
}

std::int64_t bytes_of(const device_description& device, dtype type, const std::vector<std::size_t>& sizes) {
  return memprof::tensor_bytes(device, type, sizes);
}

}  // namespace

TEST_CASE("device: row-major tensors take their elements' bytes") {
  const device_description device = device_with(tensor_layout::row_major);
  CHECK(bytes_of(device, dtype::float32, {3, 5}) == 60);
  CHECK(bytes_of(device, dtype::bfloat16, {3, 5}) == 30);
  CHECK(bytes_of(device, dtype::float16, {3, 5}) == 30);
  CHECK(bytes_of(device, dtype::float8, {3, 5}) == 15);
  CHECK(bytes_of(device, dtype::int32, {3, 5}) == 60);
  CHECK(bytes_of(device, dtype::int8, {3, 5}) == 15);
  CHECK(bytes_of(device, dtype::boolean, {3, 5}) == 15);
  CHECK(bytes_of(device, dtype::float32, {}) == 4);
  CHECK(bytes_of(device, dtype::float32, {7, 0, 3}) == 0);
}

TEST_CASE("device: a tile of 32 x 32 elements has the bytes of its type, block floats an exponent for each 16 elements") {
  const device_description device = device_with(tensor_layout::tile);
  CHECK(bytes_of(device, dtype::float32, {32, 32}) == 4096);
  CHECK(bytes_of(device, dtype::bfloat16, {32, 32}) == 2048);
  CHECK(bytes_of(device, dtype::int8, {32, 32}) == 1024);
  CHECK(bytes_of(device, dtype::block_float8, {32, 32}) == 1024 + 64);
  CHECK(bytes_of(device, dtype::block_float4, {32, 32}) == 512 + 64);
}

TEST_CASE("device: tiles pad the last two dimensions to multiples of 32 and no other") {
  const device_description device = device_with(tensor_layout::tile);
  CHECK(bytes_of(device, dtype::bfloat16, {33, 31}) == 2 * 2048);
  CHECK(bytes_of(device, dtype::bfloat16, {1, 1, 1, 2048}) == 64 * 2048);
  CHECK(bytes_of(device, dtype::bfloat16, {2048}) == 64 * 2048);
  CHECK(bytes_of(device, dtype::bfloat16, {}) == 2048);
  CHECK(bytes_of(device, dtype::bfloat16, {5, 3, 64, 96}) == 15 * 6 * 2048);
}

TEST_CASE("device: sizes are rounded up to the allocator's multiple") {
  const device_description device = device_with(tensor_layout::row_major, 512);
  CHECK(bytes_of(device, dtype::float32, {1}) == 512);
  CHECK(bytes_of(device, dtype::float32, {128}) == 512);
  CHECK(bytes_of(device, dtype::float32, {129}) == 1024);
}

TEST_CASE("device: a tensor whose bytes do not fit 63 bits is refused") {
  const auto layout = GENERATE(tensor_layout::row_major, tensor_layout::tile);
  const device_description device = device_with(layout, 512);
  const std::size_t half = std::size_t{1} << 31;
  CHECK_THROWS_MATCHES(bytes_of(device, dtype::float32, {half, half, 2}), memprof::error,
                       MessageMatches(ContainsSubstring("do not fit in 63 bits")));
  CHECK_THROWS_AS(bytes_of(device, dtype::int8, {SIZE_MAX}), memprof::error);
  // One less than 2^63 fits, and its multiple of 512 does not.
  if (layout == tensor_layout::row_major) CHECK_THROWS_AS(bytes_of(device, dtype::int8, {SIZE_MAX / 2}), memprof::error);
}

TEST_CASE("device: block floats need tiles") {
  CHECK_THROWS_MATCHES(bytes_of(device_with(tensor_layout::row_major), dtype::block_float8, {32, 32}), memprof::error,
                       MessageMatches(ContainsSubstring("bfp8 exists only in tiles")));
}

TEST_CASE("device: the TinyLlama of the published table has the optimizer state that was measured") {
  // 22 blocks of 2048 channels, 4 groups of keys and values of 64 channels, 5632 in the MLP; 96 characters; untied output.
  const device_description device = device_preset("wormhole-12gb");
  const auto matrix = [&](std::size_t rows, std::size_t columns) { return bytes_of(device, dtype::bfloat16, {rows, columns}); };
  const std::int64_t norm = bytes_of(device, dtype::bfloat16, {2048});
  const std::int64_t block = 2 * matrix(2048, 2048) + matrix(2048, 512) + 3 * matrix(2048, 5632) + 2 * norm;
  const std::int64_t weights = 22 * block + 2 * matrix(96, 2048) + norm;
  CHECK(weights == 1'944'453'120);
  // Two moments; the tracker printed 3708.76 MB (2^20 bytes), in a run that rounds to a hundredth.
  CHECK((2 * weights * 100 + (1 << 19)) / (1 << 20) == 370'875);
}

TEST_CASE("device: a bank holds what its allocator's out-of-memory messages say") {
  const memprof::device_space dram = *device_preset("wormhole-12gb").find_space("dram");
  CHECK(dram.capacity == 12 * std::int64_t{1'073'741'792});
  CHECK(bytes_per_bank(dram, 205'520'896, 2048) == 17'127'424);
  CHECK(bytes_per_bank(dram, 10'485'760, 4096) == 876'544);
  CHECK(bytes_per_bank(dram, 34'359'738'368, 4096) == 2'863'312'896);
  const memprof::device_space eight_banks = *device_preset("blackhole-32gb").find_space("dram");
  CHECK(bytes_per_bank(eight_banks, 8'589'934'592, 4096) == 1'073'741'824);
  // A page of 100 bytes begins at each multiple of 64.
  CHECK(bytes_per_bank(eight_banks, 900, 100) == 2 * 128);
}

TEST_CASE("device: every preset describes spaces that can hold something") {
  for (const std::string_view name : memprof::device_preset_names) {
    const device_description device = device_preset(name);
    CHECK(device.name.view() == name);
    CHECK(device.tensor_space().capacity >= std::int64_t{11} << 30);
    for (std::size_t index = 0; index < device.space_count; ++index) {
      const memprof::device_space& space = device.spaces[index];
      CHECK(device.find_space(space.name.view()) == &space);
      CHECK(space.banks >= 1);
      CHECK((!space.is_per_core || device.core_columns * device.core_rows > 0));
    }
  }
  CHECK(device_preset("gpu-24gb").tensor_space().size_multiple == 512);
  CHECK(device_preset("wormhole-12gb").find_space("l1")->circular_buffers);
}

TEST_CASE("device: an unknown preset is refused with the names of those there are") {
  CHECK_THROWS_MATCHES(
      device_preset("gpu-1gb"), memprof::error,
      MessageMatches(ContainsSubstring("unknown device preset 'gpu-1gb'") && ContainsSubstring("blackhole-32gb")));
}

TEST_CASE("device: spaces have different names, and there are at most eight") {
  device_description device;
  device.name = "many";
  for (std::size_t index = 0; index < device_description::max_spaces; ++index)
    device.add({.name = std::string_view{std::to_string(index)}});
  CHECK_THROWS_MATCHES(device.add({.name = "one more"}), memprof::error, MessageMatches(ContainsSubstring("at most 8")));
  device.space_count = 2;
  CHECK_THROWS_MATCHES(device.add({.name = "1"}), memprof::error, MessageMatches(ContainsSubstring("two memory spaces '1'")));
  CHECK_THROWS_MATCHES(device_description{}.tensor_space(), memprof::error, MessageMatches(ContainsSubstring("no memory space")));
}

TEST_CASE("device: a name has at most 31 bytes") {
  CHECK(memprof::short_name{std::string_view{std::string(31, 'a')}}.view() == std::string(31, 'a'));
  CHECK_THROWS_MATCHES(memprof::short_name{std::string_view{std::string(32, 'a')}}, memprof::error,
                       MessageMatches(ContainsSubstring("32 bytes")));
}

TEST_CASE("dtype: names go both ways") {
  for (std::size_t index = 0; index < memprof::dtype_names.size(); ++index) {
    const auto type = static_cast<dtype>(index);
    CHECK(memprof::dtype_from_string(to_string(type)) == type);
  }
  CHECK(to_string(dtype::bfloat16) == "bf16");
  CHECK(to_string(dtype::block_float4) == "bfp4");
  CHECK_FALSE(memprof::dtype_from_string("float"));
}

}  // namespace memprof_tests::trace_device_description
