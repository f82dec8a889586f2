#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/perfetto/perfetto.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/toolkit/format/protobuf_writer.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace {

constexpr std::uint64_t slice_begin = 1;
constexpr std::uint64_t slice_end = 2;
constexpr std::uint64_t instant = 3;
constexpr std::uint64_t counter = 4;
constexpr std::uint64_t process_track = 1;
constexpr std::uint64_t segments_track = 2;
[[nodiscard]] constexpr std::uint64_t thread_track(std::uint32_t thread) noexcept { return 0x1'0000'0000U + thread; }

constexpr std::uint64_t sequence = 1;

[[nodiscard]] std::string sound(std::string_view text) {
  std::string result;
  detail::append_utf8(result, text);
  return result;
}

}  // namespace

void perfetto_writer::begin(const process_info& process) {
  pid_ = static_cast<std::uint64_t>(std::max<std::int64_t>(process.id, 1));
  std::string name = process.command_line.empty() ? "memprof" : process.command_line;
  if (process.rank >= 0) name += " (rank " + std::to_string(process.rank) + ")";
  detail::protobuf_message described;
  described.integer(1, pid_).text(6, sound(name));
  put_track(process_track, 0, "", 3, described);
  put_track(segments_track, process_track, "segments", 0, {});
}

void perfetto_writer::name_thread(std::uint32_t thread, std::string_view name) {
  if (!known_.insert(thread_track(thread)).second) return;
  // A trace numbers its threads itself; the system's ids are in the names.
  detail::protobuf_message described;
  described.integer(1, pid_).integer(2, std::uint64_t{thread} + 2).text(5, sound(name));
  put_track(thread_track(thread), process_track, "", 4, described);
}

void perfetto_writer::begin_operation(std::uint32_t thread, std::int64_t ns, std::string_view name) {
  name_thread(thread, "thread " + std::to_string(thread));  // until it gets a name
  put_event(ns, detail::protobuf_message{}
                    .integer(9, slice_begin)
                    .integer(11, thread_track(thread))
                    .text(22, "operation")
                    .text(23, sound(name)));
}

void perfetto_writer::end_operation(std::uint32_t thread, std::int64_t ns) {
  put_event(ns, detail::protobuf_message{}.integer(9, slice_end).integer(11, thread_track(thread)));
}

void perfetto_writer::segment(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) {
  put_event(
      begin_ns,
      detail::protobuf_message{}.integer(9, slice_begin).integer(11, segments_track).text(22, "segment").text(23, sound(name)));
  put_event(end_ns, detail::protobuf_message{}.integer(9, slice_end).integer(11, segments_track));
}

void perfetto_writer::count(std::uint32_t number, std::string_view space, std::int64_t ns, const timeline_counters& value) {
  put_counter(number, 0, space, " live", ns, value.live);
  if (value.reserved >= 0) put_counter(number, 1, space, " reserved", ns, value.reserved);
  if (!value.has_categories) return;
  for (std::size_t index = 0; index < detail::category_names.size(); ++index) {
    put_counter(number, static_cast<std::uint32_t>(2 + index), space, std::string{' '}.append(detail::category_names[index]), ns,
                value.by_category[index]);
  }
}

void perfetto_writer::mark(std::string_view text, std::int64_t ns) {
  put_event(ns,
            detail::protobuf_message{}.integer(9, instant).integer(11, process_track).text(22, "memory").text(23, sound(text)));
}

void perfetto_writer::put_counter(std::uint32_t number, std::uint32_t series, std::string_view space, std::string_view what,
                                  std::int64_t ns, std::int64_t value) {
  const std::uint64_t track = 0x2'0000'0000U + number * std::uint64_t{64} + series;
  if (known_.insert(track).second) {
    detail::protobuf_message described;  // in bytes, with all series of a space on one scale
    described.integer(3, std::uint64_t{3}).text(7, sound(space));
    put_track(track, process_track, std::string{space} + std::string{what}, 8, described);
  }
  put_event(ns, detail::protobuf_message{}.integer(9, counter).integer(11, track).integer(30, value));
}

void perfetto_writer::put_track(std::uint64_t track, std::uint64_t parent, std::string_view name, std::uint32_t field,
                                const detail::protobuf_message& described) {
  detail::protobuf_message message;
  message.integer(1, track);
  if (parent != 0) message.integer(5, parent);
  if (!name.empty()) message.text(2, sound(name));
  if (field != 0) message.message(field, described);
  detail::protobuf_message packet;
  packet.integer(10, sequence);
  if (is_first_) packet.integer(13, std::uint64_t{1});  // the state of the sequence starts here
  is_first_ = false;
  put(packet.message(60, message));
}

void perfetto_writer::put_event(std::int64_t ns, const detail::protobuf_message& event) {
  put(detail::protobuf_message{}.integer(8, ns).integer(10, sequence).message(11, event));
}

void perfetto_writer::put(const detail::protobuf_message& packet) {
  out_.write(detail::protobuf_message{}.message(1, packet).bytes());
}

}  // namespace memprof::inline MEMPROF_ABI
