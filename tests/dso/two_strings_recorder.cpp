#include <dso/two_strings.hpp>

#include <memprof/memprof.hpp>
#include <memprof/record/visit_live_blocks.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

void record_with_other_string() {
  memprof::memory_resource memory{"cpu"};
  auto scope = memprof::track_operation<"other">();
  void* const block = memory.allocate(1000);
  memory.deallocate(block, 1000);
  memprof::snapshot("OTHER");
}

std::uint64_t live_bytes_with_other_string() {
  std::uint64_t total = 0;
  const memprof::extend::event_sink writer;
  memprof::detail::for_each_live_block(writer.space("cpu"), [&](const void*, std::size_t bytes) { total += bytes; });
  return total;
}

void add_facts_with_other_string() {
  memprof::fact_table table{"other_facts", {"index", "half", "text"}, {}};
  for (std::int64_t index = 0; index < other_facts; ++index) {
    table.rows.push_back({index, static_cast<double>(index) / 2, other_text(index)});
  }
  const memprof::extend::event_sink writer;
  writer.add_facts({"other_facts", {"index"}, {{std::int64_t{-1}}}});  // replaced by the next
  writer.add_facts(table);
  writer.add_facts({"no_rows", {"index"}, {}});
}

bool has_profile_with_other_string() { return !memprof::current_profile().spaces.empty(); }

void end_capture_with_other_string() { memprof::end_capture(); }
