// The reader of tt-mlir logs must turn any bytes into either an error that names the file or a consistent trace.
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_json_check.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_json.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

memprof::detail::file_handle file_of(std::string_view bytes) {
  const int descriptor = ::memfd_create("log", 0);
  if (descriptor < 0 || ::write(descriptor, bytes.data(), bytes.size()) != static_cast<::ssize_t>(bytes.size())) std::abort();
  if (::lseek(descriptor, 0, SEEK_SET) != 0) std::abort();
  return memprof::detail::file_handle{::fdopen(descriptor, "rb")};
}

/// The reader makes the blocks: each is freed once, as a whole.
void check_trace(std::FILE* log) {
  memprof::tt_log_source source{log, "input"};
  memprof::trace made;
  memprof::extend::trace_writer writer{made, memprof::tt_log_source::info()};
  writer.finish(source.write_to(writer));
  const memprof::profile found = memprof::profile_of(made);
  for (const memprof::space_profile& space : found.spaces) {
    if (space.anomalies.unmatched_frees.count != 0 || space.anomalies.mismatched_sizes.count != 0) std::abort();
    if (space.cumulative_current != space.allocations - space.deallocations || space.cumulative_current < 0) std::abort();
  }
  for (const memprof::tt_memory_fact& each : source.memories()) {
    if (!(each.greatest_fragmentation >= each.peak_fragmentation && each.greatest_fragmentation <= 1)) std::abort();
  }
}

/// The two files match, whatever the log.
void check_files(std::FILE* log) {
  const memprof::tt_log_content content = memprof::content_of_tt_log(log, "input");
  for (const memprof::tt_rank_summary& rank : content.ranks) {
    memprof::text_sink memory;
    memprof::text_sink operations;
    memprof::write_tt_json(log, "input", rank, content.inputs, memory, operations);
    std::uint64_t count = 0;
    const memprof::detail::file_handle first = file_of(memory.text);
    const memprof::detail::file_handle second = file_of(operations.text);
    if (!memprof::validate_tt_json(first.get(), second.get(), count).empty() || count != rank.operations) std::abort();
  }
  memprof::text_sink inputs;
  memprof::write_tt_inputs(content, inputs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memprof::detail::file_handle log = file_of({reinterpret_cast<const char*>(data), size});
  (void)memprof::is_tt_log(log.get());
  for (const auto check : {check_trace, check_files}) {
    try {
      check(log.get());
    } catch (const memprof::error& fault) {
      if (std::string_view{fault.what()}.find("'input'") == std::string_view::npos) std::abort();
    }
  }
  return 0;
}
