// The reader of heaptrack recordings must turn any bytes into either an error that names the file or a consistent trace.
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/heaptrack/heaptrack.hpp>
#include <memprof/toolkit/symbols/call_stacks.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <unordered_set>

namespace {

memprof::detail::file_handle file_of(const std::uint8_t* data, std::size_t size) {
  const int descriptor = ::memfd_create("recording", 0);
  if (descriptor < 0 || ::write(descriptor, data, size) != static_cast<::ssize_t>(size)) std::abort();
  if (::lseek(descriptor, 0, SEEK_SET) != 0) std::abort();
  return memprof::detail::file_handle{::fdopen(descriptor, "rb")};
}

/// The reader assigns the addresses: each block is allocated once, disjoint from all others, and freed once.
void check(const memprof::profile& found) {
  for (const memprof::space_profile& space : found.spaces) {
    if (space.anomalies != memprof::space_anomalies{}) std::abort();
    if (space.cumulative_current != space.allocations - space.deallocations || space.cumulative_current < 0) std::abort();
  }
}

/// Each label is a stack with a call or more.
struct stack_check {
  memprof::detail::label_table names;
  std::unordered_set<memprof::extend::label> stacks;

  void info(const memprof::extend::capture_info&) {}
  void name(memprof::extend::label, std::string_view text) { (void)names.append(text); }
  void space(const memprof::extend::space_definition&) {}
  void facts(memprof::extend::fact_part&&) {}
  void events(const memprof::extend::event* first, const memprof::extend::event* last, std::uint32_t) {
    for (; first != last; ++first) {
      if (first->kind == memprof::extend::event_kind::allocate && first->label != 0) stacks.insert(first->label);
    }
  }
};

void check_stacks(const memprof::trace& made) {
  stack_check all;
  made.visit(all);
  memprof::call_stacks stacks{all.names};
  for (const memprof::extend::label stack : all.stacks) {
    const std::size_t frames = stacks.frames(stack).size();
    if (frames == 0 || frames > memprof::detail::max_stack_frames) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memprof::detail::file_handle file = file_of(data, size);
  (void)memprof::is_heaptrack(file.get());
  using frames = std::optional<memprof::stack_frames>;
  for (const frames operations : {frames{}, frames{memprof::stack_frames::own}, frames{memprof::stack_frames::all}}) {
    std::rewind(file.get());
    try {
      memprof::heaptrack_source source{file.get(), "input", operations};
      memprof::trace made;
      memprof::extend::trace_writer writer{made, source.info()};
      source.write_to(writer);
      writer.finish();
      const memprof::profile found = memprof::profile_of(made);
      check(found);
      if (!operations && !found.operations.empty()) std::abort();
      if (!operations) check_stacks(made);
    } catch (const memprof::error& fault) {
      if (std::string_view{fault.what()}.find("'input'") == std::string_view::npos) std::abort();
    }
  }
  return 0;
}
