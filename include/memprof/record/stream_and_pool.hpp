#pragma once

#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/label.hpp>

#include <cstddef>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace extend {

/// A device stream and the pool from which an allocator serves it. Blocks carry one, so that the profile reports how much each
/// stream and pool held (`space_profile::streams`). Default-constructed: none.
class stream_and_pool {
 public:
  constexpr stream_and_pool() = default;
  /// The stream and pool with these names, of which about 60 characters each are kept. Takes a lock, but nothing from `operator
  /// new`: create it once for each stream and pool, not for each event. None if the system has no memory.
  explicit stream_and_pool(std::string_view stream, std::string_view pool = {}) noexcept {
    constexpr std::size_t longest = 62;
    stream = stream.substr(0, longest);
    pool = pool.substr(0, longest);
    char text[2 * longest + 1];
    stream.copy(text, stream.size());
    text[stream.size()] = detail::name_separator;
    pool.copy(text + stream.size() + 1, pool.size());
    const detail::control_guard control;
    const char* const both = text;
    name_ = detail::intern(abi_1::process_registry, {both, stream.size() + 1 + pool.size()});
  }

  /// Both names as one label; 0 for none.
  [[nodiscard]] constexpr label name() const noexcept { return name_; }
  bool operator==(const stream_and_pool&) const = default;

 private:
  label name_ = 0;
};

}  // namespace extend

}  // namespace memprof::inline MEMPROF_ABI
