#pragma once

#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <cstdint>

namespace memprof_tests {

/// A trace of blocks with stacks of one or two frames in a file that is not there.
struct stacked_trace {
  memprof::trace events;
  memprof::extend::trace_writer writer{events};
  memprof::extend::label module = writer.label_of(
      "/no/such/program\x1f\x1f"
      "0");

  memprof::extend::label stack(std::uint64_t outer, std::uint64_t inner = 0) {
    memprof::detail::stack_text text{{}};
    text.add({module, outer});
    if (inner != 0) text.add({module, inner});
    return writer.label_of(text.view());
  }
  void allocate(std::uint64_t address, std::uint64_t bytes, memprof::extend::label asked) {
    writer.put_event({0, address, bytes, asked, memprof::extend::event_kind::allocate, memprof::extend::cpu_space, 0});
  }
  void deallocate(std::uint64_t address) {
    writer.deallocate({memprof::extend::cpu_space}, memprof::extend::block_address{address});
  }
};

}  // namespace memprof_tests
