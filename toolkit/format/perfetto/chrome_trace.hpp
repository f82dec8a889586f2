#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/perfetto/timeline_events.hpp>
#include <memprof/trace/capture_info.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// A `timeline_sink` that writes the JSON of Chrome's tracing and of Kineto, as read by chrome://tracing, ui.perfetto.dev,
/// TensorBoard and tools for PyTorch's profiler. Memory events are Kineto's `[memory]` instants; a device for which c10 has no
/// name is its PrivateUse1. Invalid Unicode is replaced.
class chrome_trace_writer final : public timeline_sink {
 public:
  explicit chrome_trace_writer(byte_sink_view out) : out_(out) {}

  void begin(const process_info& process) override;
  void name_thread(std::uint32_t thread, std::string_view name) override;
  void begin_operation(std::uint32_t thread, std::int64_t ns, std::string_view name) override;
  void end_operation(std::uint32_t thread, std::int64_t ns) override;
  void segment(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) override;
  void count(std::uint32_t, std::string_view space, std::int64_t ns, const timeline_counters& value) override;
  void mark(std::string_view text, std::int64_t ns) override;
  void memory(const timeline_memory_event& happened) override;
  void finish() override;

 private:
  struct open_slice {
    std::int64_t begin_ns;
    std::string name;
  };

  /// `head` without its closing brace, then process and thread, then `tail`.
  void put(std::string head, std::uint32_t thread, std::string_view tail);
  void put_name(std::string_view what, std::uint32_t thread, std::string_view name);
  void put_slice(std::string_view kind, std::uint32_t thread, std::string_view name, std::int64_t begin_ns, std::int64_t end_ns);
  void put_counter(std::string_view space, std::string_view what, std::int64_t ns, std::string_view arguments);

  byte_sink_view out_;
  bool is_first_ = true;
  std::int64_t pid_ = 1;
  std::uint64_t memory_events_ = 0;
  std::unordered_map<std::uint32_t, std::vector<open_slice>> open_;
};

}  // namespace memprof::inline MEMPROF_ABI
