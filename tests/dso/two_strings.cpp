// A program whose other part was compiled with the other std::string of libstdc++, as one is that uses an older libtorch: both
// record into one capture, and this one reads the profile. The other part is a file of this program, or a shared library.

#include <dso/two_strings.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/fold_trace.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <variant>

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

bool is_as_recorded(const memprof::space_profile& cpu) {
  return cpu.cumulative_peak == 1000 && cpu.cumulative_current == 0 && cpu.segments.size() == 2 &&
         cpu.segments[0].segment == "OTHER";
}

bool is_as_added(const memprof::fact_table& table) {
  if (table.columns.size() != 3 || table.rows.size() != other_facts) return false;
  for (std::int64_t index = 0; index < other_facts; ++index) {
    const auto& row = table.rows[static_cast<std::size_t>(index)];
    if (row.size() != 3 || row[0] != memprof::fact_value{index} ||
        row[1] != memprof::fact_value{static_cast<double>(index) / 2} || row[2] != memprof::fact_value{other_text(index)})
      return false;
  }
  return true;
}

const memprof::fact_table* find_facts(const memprof::profile& profile, const char* name) {
  for (const memprof::fact_table& table : profile.facts) {
    if (table.name == name) return &table;
  }
  return nullptr;
}

}  // namespace

int main() {
  memprof::trace trace;
  auto capture = memprof::begin_capture({.trace = &trace});
  {
    memprof::memory_resource memory{"cpu"};
    void* const kept = memory.allocate(300);
    void* const also_kept = memory.allocate(4);
    expect(live_bytes_with_other_string() == 304, "the other part finds the blocks of this one");
    memory.deallocate(kept, 300);
    memory.deallocate(also_kept, 4);
  }
  record_with_other_string();
  add_facts_with_other_string();
  expect(!has_profile_with_other_string(), "the other part is refused the profile, whose strings it cannot read");
  end_capture_with_other_string();
  capture.end();
  expect(!has_profile_with_other_string(), "and after the end, too");

  expect(live_bytes_with_other_string() == 0, "and none after the end");

  const memprof::profile profile = capture.profile();
  expect(is_as_recorded(profile.space("cpu")), "the events of both are in the profile");
  expect(profile.find_operation("other") != nullptr, "and the operation");
  const memprof::fact_table* const facts = find_facts(profile, "other_facts");
  expect(facts != nullptr && is_as_added(*facts), "each fact of the other part is in the profile");
  expect(find_facts(profile, "no_rows") != nullptr, "a table without rows, too");
  expect(memprof::profile_of(trace).facts == profile.facts, "and in the trace");
  if (failures == 0) std::puts("two strings: all is as it should be");
  return failures == 0 ? 0 : 1;
}
