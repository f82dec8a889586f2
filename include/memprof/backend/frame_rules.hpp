#pragma once

#include <memprof/backend/frame_rule.hpp>
#include <memprof/backend/lasting_table.hpp>
#include <memprof/backend/stack_modules.hpp>
#include <memprof/config.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace memprof::inline MEMPROF_ABI::detail {

/// An entry of a file's .eh_frame.
struct frame_description {
  const unsigned char* begin = nullptr;  ///< null: there is none
  std::uintptr_t function = 0;

  static constexpr std::size_t header_bytes = 8;  ///< its length, and how far its CIE is

  /// What comes after the header of an entry at `begin`; empty if its form is not the usual one.
  [[nodiscard]] static frame_table_reader content(const unsigned char* begin) noexcept {
    std::uint32_t length = 0;
    std::memcpy(&length, begin, sizeof length);
    if (length < sizeof length || length == ~std::uint32_t{0}) return {begin, begin};
    return {begin + header_bytes, begin + sizeof length + length};
  }
  [[nodiscard]] const unsigned char* common() const noexcept {
    std::int32_t distance = 0;
    std::memcpy(&distance, begin + sizeof distance, sizeof distance);
    return begin + sizeof distance - distance;
  }
};

/// Finds the entry of the function that a place in the code is in, or of one that ends before it. By the table of a loaded file
/// (.eh_frame_hdr), if that has the usual form.
[[nodiscard]] inline frame_description find_frame_description(const void* header, std::uintptr_t place) noexcept {
  const auto* const table = static_cast<const unsigned char*>(header);
  // The version; where the entries are, as 32 bits from there; how many there are, as 32 bits; 32 bits from the table's begin.
  constexpr unsigned char usual_header[4] = {1, 0x1B, 0x03, 0x3B};
  if (std::memcmp(table, usual_header, sizeof usual_header) != 0) return {};
  struct sorted_entry {
    std::int32_t function;
    std::int32_t description;
  };
  std::uint32_t count = 0;
  std::memcpy(&count, table + 8, sizeof count);
  const auto entry_at = [&](std::size_t index) {
    sorted_entry entry;
    std::memcpy(&entry, table + 12 + index * sizeof entry, sizeof entry);
    return entry;
  };
  const auto address = [&](std::int32_t distance) {
    return reinterpret_cast<std::uintptr_t>(table) + static_cast<std::uintptr_t>(std::intptr_t{distance});
  };
  std::size_t begin = 0;
  for (std::size_t end = count; end > begin + 1;) {
    const std::size_t middle = begin + (end - begin) / 2;
    (address(entry_at(middle).function) <= place ? begin : end) = middle;
  }
  if (count == 0 || address(entry_at(begin).function) > place) return {};
  return {reinterpret_cast<const unsigned char*>(address(entry_at(begin).description)), address(entry_at(begin).function)};
}

/// How to leave the function that the call returns to, in a file that is loaded. It takes some hundred nanoseconds, and may take
/// the loader's lock.
[[nodiscard]] inline frame_rule find_frame_rule(std::uintptr_t returns_to) noexcept {
  const std::uintptr_t place = returns_to - 1;  // in the call: it may be the function's last instruction
  const loaded_module module = find_module_of(place);
  if (module.frame_table == nullptr) return {};
  const frame_description found = find_frame_description(module.frame_table, place);
  if (found.begin == nullptr) return {};
  frame_program program{frame_description::content(found.common())};
  return program.rule_at(frame_description::content(found.begin), found.function, place);
}

/// The rules that were found so far, for all threads.
class frame_rules {
 public:
  constexpr frame_rules() noexcept = default;

  /// How to leave the function that the call returns to. Takes no lock, unless it is new. Not under the registry's lock.
  [[nodiscard, gnu::always_inline]] inline frame_rule of(registry& shared, std::uintptr_t returns_to) noexcept {
    const frame_rule* const known = known_.find(returns_to);
    if (known != nullptr) [[likely]]
      return *known;
    return learn(shared, returns_to);
  }

  [[nodiscard]] std::size_t size() const noexcept { return known_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return known_.bytes(); }

 private:
  static constexpr std::size_t most_rules = std::size_t{1} << 20;

  [[nodiscard, gnu::cold, gnu::noinline]] frame_rule learn(registry& shared, std::uintptr_t returns_to) noexcept {
    const frame_rule found = find_frame_rule(returns_to);
    const control_guard control{shared};
    if (known_.find(returns_to) == nullptr && known_.size() < most_rules) (void)known_.add(returns_to, found);
    return found;
  }

  lasting_table<frame_rule> known_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
