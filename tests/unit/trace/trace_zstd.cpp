#include <memprof/trace/trace_zstd.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "trace_records.hpp"

namespace memprof_tests::trace_trace_zstd {

using Catch::Matchers::ContainsSubstring;
using memprof::detail::chunk_header;
using memprof::detail::trace_file_header;
using memprof_tests::scratch_folder;
using memprof_tests::trace_records;

namespace {

/// So many blocks, at addresses that repeat or not.
void put_blocks(memprof::trace& target, std::uint64_t blocks, bool are_random) {
  memprof::extend::trace_writer writer{target};
  const memprof::extend::space_id space = writer.space("dram");
  std::mt19937_64 random{1};
  for (std::uint64_t block = 1; block <= blocks; ++block) {
    const std::uint64_t address = are_random ? random() | 1 : 4096;
    writer.allocate(space, address, are_random ? random() % 100'000 : 64);
    if (!are_random) writer.deallocate(space, address, 64);
  }
  writer.finish();
}

void repack(const std::filesystem::path& from, const std::filesystem::path& to, bool packs = true) {
  const memprof::detail::file_handle file{std::fopen(from.c_str(), "rb")};
  REQUIRE(file);
  memprof::repack_trace(file.get(), from, to, packs);
}

void write_bytes(const std::filesystem::path& path, std::string_view bytes) { std::ofstream{path, std::ios::binary} << bytes; }

/// A file of one packed chunk.
std::string file_of_chunk(std::string_view payload, std::uint32_t packing = memprof::detail::packed_with_zstd) {
  trace_file_header header;
  header.chunks = 1;
  header.bytes = trace_file_header::size + chunk_header::size + payload.size();
  chunk_header chunk;
  chunk.bytes = static_cast<std::uint32_t>(payload.size());
  chunk.packing = packing;
  chunk.checksum = memprof::detail::crc32c::extend(0, reinterpret_cast<const unsigned char*>(payload.data()), payload.size());
  return std::string{memprof::detail::as_text(header.encode())}.append(memprof::detail::as_text(chunk.encode())).append(payload);
}

std::string error_of(const std::filesystem::path& path) {
  trace_records found;
  try {
    (void)memprof::read_trace(path, found);
  } catch (const memprof::error& fault) {
    return fault.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("trace zstd: a packed file is read like the one it was, and unpacked to the byte") {
  const scratch_folder folder;
  for (const bool are_random : {false, true}) {
    memprof::trace stored;
    put_blocks(stored, 300'000, are_random);
    memprof::write_trace(stored, folder / "plain");
    repack(folder / "plain", folder / "packed");
    repack(folder / "packed", folder / "unpacked", false);
    CHECK(std::filesystem::file_size(folder / "packed") < std::filesystem::file_size(folder / "plain"));
    CHECK(memprof::detail::read_whole_file(folder / "unpacked") == memprof::detail::read_whole_file(folder / "plain"));
    trace_records expected;
    stored.visit(expected);
    trace_records found;
    const memprof::trace_file_status status = memprof::read_trace(folder / "packed", found);
    CHECK(status.damage.empty());
    CHECK(status.has_ended);
    CHECK(status.bytes == std::filesystem::file_size(folder / "packed"));
    CHECK(found.all == expected.all);
    CHECK(found.names == expected.names);
  }
}

TEST_CASE("trace zstd: no flipped bit and no cut goes unnoticed") {
  const scratch_folder folder;
  memprof::trace stored;
  put_blocks(stored, 20, true);
  memprof::write_trace(stored, folder / "plain");
  repack(folder / "plain", folder / "packed");
  const std::string whole = memprof::detail::read_whole_file(folder / "packed");
  const auto is_noticed = [&](const std::string& bytes) {
    write_bytes(folder / "damaged", bytes);
    trace_records found;
    try {
      return !memprof::read_trace(folder / "damaged", found).damage.empty();
    } catch (const memprof::error&) {
      return true;
    }
  };
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    INFO("bit " << bit % 8 << " of byte " << bit / 8 << " of " << whole.size());
    REQUIRE(is_noticed(flipped));
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("cut off after " << size << " bytes");
    REQUIRE(is_noticed(whole.substr(0, size)));
  }
}

TEST_CASE("trace zstd: a damaged trace is not packed, and leaves what was there") {
  const scratch_folder folder;
  memprof::trace stored;
  put_blocks(stored, 20, true);
  memprof::write_trace(stored, folder / "plain");
  const std::string whole = memprof::detail::read_whole_file(folder / "plain");
  write_bytes(folder / "cut", whole.substr(0, whole.size() - 1));
  write_bytes(folder / "target", "precious");
  CHECK_THROWS_WITH(repack(folder / "cut", folder / "target"),
                    ContainsSubstring("is cut off within a chunk") && ContainsSubstring("it was not packed"));
  CHECK(memprof::detail::read_whole_file(folder / "target") == "precious");
}

TEST_CASE("trace zstd: a program without zstd says what the file needs") {
  const scratch_folder folder;
  memprof::trace stored;
  put_blocks(stored, 20, true);
  memprof::write_trace(stored, folder / "plain");
  repack(folder / "plain", folder / "packed");
  auto* const unpacker = std::exchange(memprof::detail::zstd_unpacker, nullptr);
  const std::string fault = error_of(folder / "packed");
  memprof::detail::zstd_unpacker = unpacker;
  CHECK_THAT(fault, ContainsSubstring("it is packed with zstd, and this program was built without"));
  CHECK_THAT(fault, ContainsSubstring("memprof trace FILE --unpack -o NEW_FILE"));
  write_bytes(folder / "other", file_of_chunk("payload", 2));
  CHECK_THAT(error_of(folder / "other"), ContainsSubstring("packed in a way that this memprof does not know"));
}

TEST_CASE("trace zstd: what is packed wrong, or so densely that a small file would cost much, is damage") {
  const scratch_folder folder;
  trace_records found;
  write_bytes(folder / "none", file_of_chunk("this is no frame of zstd"));
  CHECK_THAT(memprof::read_trace(folder / "none", found).damage, ContainsSubstring("it was packed incorrectly"));
  const std::string zeros(std::size_t{1} << 20U, '\0');
  std::string dense(ZSTD_compressBound(zeros.size()), '\0');
  dense.resize(ZSTD_compress(dense.data(), dense.size(), zeros.data(), zeros.size(), 3));
  REQUIRE(dense.size() < zeros.size() / memprof::detail::max_packing_ratio);
  write_bytes(folder / "dense", file_of_chunk(dense));
  CHECK_THAT(memprof::read_trace(folder / "dense", found).damage, ContainsSubstring("it was packed incorrectly"));
  memprof::detail::zstd_packer packer;
  const std::string_view packed = packer.pack(zeros).value_or("");
  CHECK(packed.size() >= zeros.size() / memprof::detail::max_packing_ratio);
  CHECK(packed.size() < 2 * zeros.size() / memprof::detail::max_packing_ratio);
}

}  // namespace memprof_tests::trace_trace_zstd
