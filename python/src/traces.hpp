#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/trace.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <variant>

namespace memprof_python {

/// A trace in memory or in a file. Calls from several threads take turns, as each reads the trace from its beginning.
class recorded_trace {
 public:
  explicit recorded_trace(std::shared_ptr<const memprof::trace> kept) : source_(std::move(kept)) {}
  /// Throws `memprof::error` if the file is not a trace, or cannot be read.
  explicit recorded_trace(const std::filesystem::path& path);

  /// Calls `use(trace)`, with a `memprof::trace` or a `memprof::trace_file`.
  template <class Use>
  decltype(auto) read(Use&& use) const {
    const std::lock_guard turn{turn_};
    return std::visit([&](const auto& source) -> decltype(auto) { return use(*source); }, source_);
  }

  /// The name of its file; empty: it is in memory.
  [[nodiscard]] std::string file_name() const;

  /// The file of a trace in a file.
  struct file {
    memprof::detail::file_handle handle;
    std::filesystem::path path;
    memprof::trace_file trace{handle.get(), path};
  };

 private:
  std::variant<std::shared_ptr<const memprof::trace>, std::unique_ptr<file>> source_;
  mutable std::mutex turn_;
};

template <class Source>
constexpr bool is_file = std::is_same_v<Source, recorded_trace::file>;

/// Calls `use(view)` with the trace as a `trace_source_view`.
template <class Use>
decltype(auto) with_view(const recorded_trace& self, Use&& use) {
  return self.read([&]<class Source>(const Source& source) -> decltype(auto) {
    if constexpr (is_file<Source>) {
      return use(memprof::trace_source_view{source.trace});
    } else {
      return use(memprof::trace_source_view{source});
    }
  });
}

/// The profile of a trace. Of a file, it keeps `full_segments` segments in full; 0: as many as the capture's options say.
[[nodiscard]] memprof::profile profile_of(const recorded_trace& self, bool lifetimes = false, std::uint32_t full_segments = 0);

}  // namespace memprof_python
