#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/perfetto/chrome_trace.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// Perfetto takes thread 0 to be the process.
constexpr std::uint32_t segments_thread = 1;
[[nodiscard]] constexpr std::uint32_t tid_of(std::uint32_t thread) noexcept { return thread + 2; }

/// The number of the c10::DeviceType, and of the device.
[[nodiscard]] std::pair<int, int> device_of(std::string_view space) noexcept {
  if (space == "cpu") return {0, -1};
  const std::size_t colon = space.find(':');
  int id = 0;
  if (colon != std::string_view::npos) (void)std::from_chars(space.data() + colon + 1, space.data() + space.size(), id);
  return {space.substr(0, colon) == "cuda" ? 1 : 20, id};
}

[[nodiscard]] std::string microseconds(std::int64_t ns) {
  const std::string digits = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + '.' + std::string(3 - std::min<std::size_t>(digits.size(), 3), '0') + digits;
}

}  // namespace

void chrome_trace_writer::begin(const process_info& process) {
  pid_ = std::max<std::int64_t>(process.id, 1);
  out_.write(R"({"displayTimeUnit":"ms","traceEvents":[)");
  std::string name = process.command_line.empty() ? "memprof" : process.command_line;
  if (process.rank >= 0) name += " (rank " + std::to_string(process.rank) + ")";
  put_name("process_name", segments_thread, name);
  put_name("thread_name", segments_thread, "segments");
  put(R"({"ph":"M","name":"thread_sort_index")", segments_thread, R"(,"args":{"sort_index":-1})");
}

void chrome_trace_writer::name_thread(std::uint32_t thread, std::string_view name) {
  put_name("thread_name", tid_of(thread), name);
}

void chrome_trace_writer::begin_operation(std::uint32_t thread, std::int64_t ns, std::string_view name) {
  open_[thread].push_back({ns, std::string{name}});
}

void chrome_trace_writer::end_operation(std::uint32_t thread, std::int64_t ns) {
  std::vector<open_slice>& open = open_[thread];
  if (open.empty()) return;
  put_slice("operation", tid_of(thread), open.back().name, open.back().begin_ns, ns);
  open.pop_back();
}

void chrome_trace_writer::segment(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) {
  put_slice("segment", segments_thread, name, begin_ns, end_ns);
}

void chrome_trace_writer::count(std::uint32_t, std::string_view space, std::int64_t ns, const timeline_counters& value) {
  std::string text = R"(,"args":{"live":)" + std::to_string(value.live);
  if (value.reserved >= 0) text += R"(,"reserved":)" + std::to_string(value.reserved);
  put_counter(space, " bytes", ns, text + '}');
  if (!value.has_categories) return;
  text = R"(,"args":{)";
  for (std::size_t index = 0; index < detail::category_names.size(); ++index) {
    if (index != 0) text += ',';
    detail::append_json_key(text, detail::category_names[index]);
    text += std::to_string(value.by_category[index]);
  }
  put_counter(space, " by category", ns, text + '}');
}

void chrome_trace_writer::mark(std::string_view text, std::int64_t ns) {
  std::string line = R"({"ph":"i","s":"p","cat":"memory","name":)";
  detail::append_json_string(line, text);
  put(std::move(line) + R"(,"ts":)" + microseconds(ns), segments_thread, "");
}

void chrome_trace_writer::memory(const timeline_memory_event& happened) {
  const auto [type, id] = device_of(happened.space);
  put(R"({"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","ts":)" + microseconds(happened.time_ns),
      tid_of(happened.thread),
      R"(,"args":{"Device Type":)" + std::to_string(type) + R"(,"Device Id":)" + std::to_string(id) + R"(,"Addr":)" +
          std::to_string(happened.address) + R"(,"Bytes":)" + std::to_string(happened.bytes) + R"(,"Total Allocated":)" +
          std::to_string(happened.live) + R"(,"Total Reserved":)" + std::to_string(happened.reserved) + R"(,"Ev Idx":)" +
          std::to_string(memory_events_++) + '}');
}

void chrome_trace_writer::finish() { out_.write("\n]}\n"); }

void chrome_trace_writer::put(std::string head, std::uint32_t thread, std::string_view tail) {
  head += R"(,"pid":)" + std::to_string(pid_) + R"(,"tid":)" + std::to_string(thread);
  head += tail;
  head += '}';
  out_.write(is_first_ ? "\n" : ",\n");
  is_first_ = false;
  out_.write(head);
}

void chrome_trace_writer::put_name(std::string_view what, std::uint32_t thread, std::string_view name) {
  std::string tail = R"(,"args":{"name":)";
  detail::append_json_string(tail, name);
  put(R"({"ph":"M","name":")" + std::string{what} + '"', thread, tail + '}');
}

void chrome_trace_writer::put_slice(std::string_view kind, std::uint32_t thread, std::string_view name, std::int64_t begin_ns,
                                    std::int64_t end_ns) {
  std::string head = R"({"ph":"X","cat":")" + std::string{kind} + R"(","name":)";
  detail::append_json_string(head, name);
  put(std::move(head) + R"(,"ts":)" + microseconds(begin_ns) + R"(,"dur":)" +
          microseconds(std::max<std::int64_t>(end_ns - begin_ns, 0)),
      thread, "");
}

void chrome_trace_writer::put_counter(std::string_view space, std::string_view what, std::int64_t ns,
                                      std::string_view arguments) {
  std::string head = R"({"ph":"C","name":)";
  detail::append_json_string(head, std::string{space} + std::string{what});
  put(std::move(head) + R"(,"ts":)" + microseconds(ns), segments_thread, arguments);
}

}  // namespace memprof::inline MEMPROF_ABI
