#include <memprof/trace/trace_file.hpp>

#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <scratch_folder.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trace_records.hpp"

namespace memprof_tests::trace_trace_file {

using Catch::Matchers::ContainsSubstring;
using memprof::extend::event_kind;
using memprof_tests::trace_records;

namespace {

class scratch_file {
 public:
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string read() const { return memprof::detail::read_whole_file(path_); }
  void write(const std::string& bytes) const { std::ofstream{path_, std::ios::binary} << bytes; }

 private:
  memprof_tests::scratch_folder folder_;
  std::filesystem::path path_ = folder_ / "run.memtrace";
};

/// Two spaces, operations, two segments.
void put_step(memprof::trace& target, std::uint64_t blocks) {
  memprof::extend::trace_writer writer{target};
  const memprof::extend::space_id gpu = writer.space("cuda:0", 1 << 20);
  const auto operation = writer.begin_operation("forward");
  for (std::uint64_t block = 1; block <= blocks; ++block) writer.allocate(gpu, 4096 * block, 100 * block);
  writer.end_operation(operation);
  writer.end_segment("FORWARD_PASS");
  for (std::uint64_t block = 1; block < blocks; ++block) writer.deallocate(gpu, 4096 * block);
  writer.add_facts({"facts", {"name", "value"}, {{{"a", 1}}}});
  writer.at(1'000'000);
  writer.finish();
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

TEST_CASE("trace file: what was written is read, in one chunk or several") {
  for (const std::uint64_t blocks : {std::uint64_t{3}, std::uint64_t{300'000}}) {
    memprof::trace stored;
    put_step(stored, blocks);
    const scratch_file file;
    memprof::write_trace(stored, file.path());
    trace_records expected;
    stored.visit(expected);
    trace_records found;
    const memprof::trace_file_status status = memprof::read_trace(file.path(), found);
    CHECK(status.damage.empty());
    CHECK(status.has_ended);
    CHECK((blocks < 10 ? status.chunks == 1 : status.chunks > 1));
    CHECK(status.bytes == std::filesystem::file_size(file.path()));
    CHECK(found.all == expected.all);
    CHECK(found.infos == expected.infos);
    CHECK(found.names == expected.names);
    CHECK(found.spaces == expected.spaces);
    CHECK(found.tables.all() == expected.tables.all());
    memprof::trace_file_status again;
    const memprof::profile profile = memprof::profile_of(file.path(), again);
    CHECK(profile == memprof::profile_of(stored));
    CHECK(profile.exact);
    CHECK(profile.space("cuda:0").cumulative_peak == static_cast<std::int64_t>(100 * blocks * (blocks + 1) / 2));
  }
}

TEST_CASE("trace file: it is known by its content") {
  memprof::trace stored;
  put_step(stored, 1);
  const scratch_file file;
  CHECK_FALSE(memprof::is_trace_file(file.path()));
  file.write("{\"format\": \"memprof-profile\"}");
  CHECK_FALSE(memprof::is_trace_file(file.path()));
  memprof::write_trace(stored, file.path());
  CHECK(memprof::is_trace_file(file.path()));
}

TEST_CASE("trace file: cut off at any byte, it is used up to the last whole chunk and says so") {
  memprof::trace stored;
  put_step(stored, 20);
  const scratch_file file;
  memprof::write_trace(stored, file.path());
  const std::string whole = file.read();
  trace_records expected;
  stored.visit(expected);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("cut off after " << size << " of " << whole.size() << " bytes");
    file.write(whole.substr(0, size));
    if (size < memprof::detail::trace_file_header::size) {
      CHECK_THAT(error_of(file.path()), ContainsSubstring(size < 8 ? "it is not a trace" : "it is cut off within its header"));
      continue;
    }
    trace_records found;
    const memprof::trace_file_status status = memprof::read_trace(file.path(), found);
    CHECK_THAT(status.damage, ContainsSubstring("is cut off"));
    CHECK_FALSE(status.has_ended);
    REQUIRE_FALSE(found.all.empty());
    CHECK(found.all.back().second.kind == memprof::extend::event_kind::gap);
  }
}

TEST_CASE("trace file: after the chunks that are intact a damaged one ends the reading") {
  memprof::trace stored;
  put_step(stored, 300'000);
  const scratch_file file;
  memprof::write_trace(stored, file.path());
  std::string bytes = file.read();
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);
  file.write(bytes);
  memprof::trace_file_status status;
  const memprof::profile profile = memprof::profile_of(file.path(), status);
  CHECK_THAT(status.damage, ContainsSubstring("is damaged after " + std::to_string(status.chunks) + " of " +
                                              std::to_string(status.chunks + 1) + " chunks"));
  CHECK(status.chunks >= 1);
  CHECK_FALSE(profile.exact);
  CHECK_FALSE(profile.complete);
  CHECK(profile.anomalies.missing_events == 1);
  CHECK(profile.space("cuda:0").allocation_count == 300'000);
}

TEST_CASE("trace file: no flipped bit goes unnoticed") {
  memprof::trace stored;
  put_step(stored, 5);
  const scratch_file file;
  memprof::write_trace(stored, file.path());
  const std::string whole = file.read();
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    file.write(flipped);
    trace_records found;
    bool is_noticed = false;
    try {
      is_noticed = !memprof::read_trace(file.path(), found).damage.empty();
    } catch (const memprof::error&) {
      is_noticed = true;
    }
    INFO("bit " << bit % 8 << " of byte " << bit / 8 << " of " << whole.size());
    CHECK(is_noticed);
  }
}

TEST_CASE("trace file: what is none, or of a newer version, is refused with its name and what to do") {
  const scratch_file file;
  const std::string start = "cannot read '" + file.path().string() + "': ";
  CHECK(error_of(file.path()) == start + "No such file or directory");
  file.write("=== Memory Usage Summary ===\n");
  CHECK(error_of(file.path()) == start + "it is not a trace");
  memprof::detail::trace_file_header header;
  header.version = 7;
  file.write(std::string{memprof::detail::as_text(header.encode())});
  CHECK(error_of(file.path()) ==
        start + "it is a trace of version 7, and this memprof reads version 1; read it with a newer memprof");
  header.version = memprof::detail::trace_file_version;
  header.revision = 9;
  file.write(std::string{memprof::detail::as_text(header.encode())});
  CHECK(error_of(file.path()) == "no error");
}

TEST_CASE("trace file: a trace that lacks events says so in a file too") {
  memprof::trace stored{std::size_t{256} * 1024};
  put_step(stored, 300'000);
  REQUIRE(stored.left_out() > 0);
  const scratch_file file;
  memprof::write_trace(stored, file.path());
  memprof::trace_file_status status;
  const memprof::profile profile = memprof::profile_of(file.path(), status);
  CHECK(status.damage.empty());
  CHECK_FALSE(profile.exact);
  CHECK(profile.anomalies.missing_events == static_cast<std::int64_t>(stored.left_out()));
  CHECK(profile == memprof::profile_of(stored));
}

TEST_CASE("trace file: a failure names the file and the reason, and leaves what was there") {
  memprof::trace stored;
  put_step(stored, 5);
  CHECK_THROWS_WITH(memprof::write_trace(stored, "/nowhere/run.memtrace"),
                    "cannot write '/nowhere/run.memtrace': No such file or directory");
  if (std::filesystem::exists("/dev/full")) {
    CHECK_THROWS_WITH(memprof::write_trace(stored, "/dev/full"), ContainsSubstring("No space left on device"));
  }
}

TEST_CASE("trace file: a chunk may be empty") {
  const scratch_file file;
  memprof::trace parts[2];
  put_step(parts[0], 3);
  std::string chunks;
  memprof::detail::trace_file_header header;
  const auto add = [&](const unsigned char* bytes, std::size_t size) {
    memprof::detail::chunk_header chunk;
    chunk.bytes = static_cast<std::uint32_t>(size);
    chunk.number = static_cast<std::uint32_t>(header.chunks++);
    chunk.checksum = memprof::detail::crc32c::extend(0, bytes, size);
    chunks += memprof::detail::as_text(chunk.encode());
    if (size != 0) chunks.append(reinterpret_cast<const char*>(bytes), size);
  };
  add(nullptr, 0);
  parts[0].for_each_chunk(add);
  add(nullptr, 0);
  file.write(std::string{memprof::detail::as_text(header.encode())} + chunks);
  trace_records found;
  const memprof::trace_file_status status = memprof::read_trace(file.path(), found);
  CHECK(status.damage.empty());
  CHECK(status.chunks == 3);
  CHECK(status.has_ended);
}

TEST_CASE("trace file: numbers that no capture writes give a profile that can be read again") {
  memprof::trace stored;
  memprof::extend::capture_info info;
  info.begin_stamp = ~std::uint64_t{0};
  info.begin_unix_ns = INT64_MIN;
  stored.info(info);
  const auto put = [&](event_kind kind, std::uint64_t stamp, std::uint64_t address, std::uint64_t bytes) {
    const memprof::extend::event made{stamp, address, bytes, 0, kind, memprof::extend::any_space, 0};
    stored.events(&made, &made + 1, memprof::detail::no_ring_id);
  };
  put(event_kind::clock_reading, 5, ~std::uint64_t{0}, 0);
  put(event_kind::clock_reading, 10, INT64_MAX, 0);
  put(event_kind::segment_end, 20, 0, 0);
  put(event_kind::clock_reading, ~std::uint64_t{0}, INT64_MAX, 0);
  put(event_kind::lost_events, 0, ~std::uint64_t{0}, 1);
  put(event_kind::gap, 0, 0, ~std::uint64_t{0});
  put(event_kind::gap, 0, 0, 2);
  put(event_kind::segment_end, 30, 0, 0);
  const memprof::profile profile = memprof::profile_of(stored);
  CHECK_FALSE(profile.exact);
  CHECK(profile.anomalies.dropped_events == INT64_MAX);
  CHECK(profile.anomalies.missing_events == INT64_MAX);
  CHECK(profile.duration_ns >= 0);
  for (const memprof::segment& segment : profile.segments) {
    CHECK(segment.begin_ns >= 0);
    CHECK(segment.end_ns >= segment.begin_ns);
  }
}

TEST_CASE("trace file: of two traces in one file the first is read, and that is said") {
  memprof::trace stored;
  const memprof::extend::event end{1, 0, 0, 0, event_kind::capture_end, memprof::extend::any_space, 0};
  stored.events(&end, &end + 1, memprof::detail::no_ring_id);
  const scratch_file file;
  memprof::write_trace(stored, file.path());
  const std::string once = memprof::detail::read_whole_file(file.path());
  trace_records found;
  CHECK(memprof::read_trace(file.path(), found).damage.empty());
  file.write(once + once);
  const memprof::trace_file_status status = memprof::read_trace(file.path(), found);
  CHECK(status.damage == "'" + file.path().string() + "' goes on with another trace at byte " + std::to_string(once.size()) +
                             ", as joined files do");
  CHECK(status.chunks == 1);
}

TEST_CASE("trace file: events that are missing first are a trace limit's only if what they left follows") {
  const auto dropped_of = [](bool has_memory, bool has_state) {
    const scratch_file file;
    memprof::trace stored;
    const auto put = [&](event_kind kind, std::uint64_t address, std::uint64_t bytes) {
      const memprof::extend::event made{1, address, bytes, 0, kind, memprof::extend::any_space, 0};
      stored.events(&made, &made + 1, memprof::detail::no_ring_id);
    };
    put(event_kind::gap, 0, 7);
    if (has_state) {
      memprof::detail::page_array<unsigned char> state;
      REQUIRE(state.push_back(0));
      stored.saved_state(state);
    }
    if (has_memory) put(event_kind::deallocate, 4096, 0);
    put(event_kind::capture_end, 0, 0);
    memprof::write_trace(stored, file.path());
    trace_records found;
    return memprof::read_trace(file.path(), found).dropped;
  };
  CHECK(dropped_of(false, false) == 0);  // all of them are missing
  CHECK(dropped_of(true, false) == 7);
  CHECK(dropped_of(false, true) == 7);
}

TEST_CASE("trace file: what the capture was must be possible") {
  const auto is_refused = [](const memprof::extend::capture_info& info, std::string_view replaced = {},
                             std::string_view by = {}) {
    std::string encoded = memprof::detail::encode_info(info);
    if (!replaced.empty()) encoded.replace(encoded.find(replaced), replaced.size(), by);
    memprof::extend::capture_info read;
    return !memprof::detail::decode_info(encoded, read);
  };
  memprof::extend::capture_info info;
  CHECK_FALSE(is_refused(info));
  info.largest_blocks = memprof::detail::max_largest_blocks + 1;
  CHECK(is_refused(info));
  info = {};
  constexpr std::string_view mode{"\x02\x01\x00", 3};             // tag, length, zigzag of 0
  constexpr std::string_view mode_of_256{"\x02\x02\x80\x04", 4};  // the lowest byte of 256 is 0
  CHECK(is_refused(info, mode, mode_of_256));
}

}  // namespace memprof_tests::trace_trace_file
