#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/trace/capture_info.hpp>

#include <cstdint>
#include <string_view>
#include <unordered_set>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
class protobuf_message;
}

/// A `timeline_sink` that writes a Perfetto trace, as read by ui.perfetto.dev and its trace processor. A third of the size of the
/// JSON, with counters in bytes. Field numbers are those of https://github.com/google/perfetto/tree/main/protos/perfetto/trace.
class perfetto_writer final : public timeline_sink {
 public:
  explicit perfetto_writer(byte_sink_view out) : out_(out) {}

  void begin(const process_info& process) override;
  void name_thread(std::uint32_t thread, std::string_view name) override;
  void begin_operation(std::uint32_t thread, std::int64_t ns, std::string_view name) override;
  void end_operation(std::uint32_t thread, std::int64_t ns) override;
  void segment(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) override;
  void count(std::uint32_t number, std::string_view space, std::int64_t ns, const timeline_counters& value) override;
  void mark(std::string_view text, std::int64_t ns) override;
  void memory(const timeline_memory_event&) override {}  // the counters have it
  void finish() override {}

 private:
  void put_counter(std::uint32_t number, std::uint32_t series, std::string_view space, std::string_view what, std::int64_t ns,
                   std::int64_t value);
  void put_track(std::uint64_t track, std::uint64_t parent, std::string_view name, std::uint32_t field,
                 const detail::protobuf_message& described);
  void put_event(std::int64_t ns, const detail::protobuf_message& event);
  void put(const detail::protobuf_message& packet);

  byte_sink_view out_;
  bool is_first_ = true;
  std::uint64_t pid_ = 1;
  std::unordered_set<std::uint64_t> known_;
};

}  // namespace memprof::inline MEMPROF_ABI
