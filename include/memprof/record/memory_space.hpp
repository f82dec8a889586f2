#pragma once

#include <memprof/detail/error.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

/// Adds a space with that name, in that memory. Under the registry's lock.
[[nodiscard]] inline std::uint8_t add_space(registry& shared, label name, label memory) noexcept {
  shared.space_names[shared.space_count] = name;
  shared.space_memories[shared.space_count] = memory;
  const auto id = static_cast<std::uint8_t>(shared.space_count++);
  if (shared.define_space != nullptr) shared.define_space(shared, id);
  return id;
}

/// The id of the memory space with that name, created if new; `any_space` if there are too many or the system has no memory. The
/// last id stands for all others. `memory` only matters for a new space. Under the registry's lock.
[[nodiscard]] inline std::uint8_t id_of_space(registry& shared, std::string_view name, std::string_view memory = {}) noexcept {
  const label wanted = detail::intern(shared, name);
  for (std::uint32_t id = 0; id < shared.space_count; ++id) {
    if (shared.space_names[id] == wanted) return static_cast<std::uint8_t>(id);
  }
  if (wanted == 0 || wanted == other_names || shared.space_count >= registry::max_spaces - 1) return any_space;
  if (memory.empty() || memory == name) return add_space(shared, wanted, 0);
  if (memory == host_memory_name) return add_space(shared, wanted, host_memory);
  const label named = detail::intern(shared, memory);
  return add_space(shared, wanted, named == other_names ? 0 : named);
}

/// The id of the space that stands for all others; `any_space` if the system had no memory for the very first name. Under the
/// registry's lock.
[[nodiscard]] inline std::uint8_t id_of_other_spaces(registry& shared) noexcept {
  constexpr std::uint8_t last = registry::max_spaces - 1;
  if (shared.space_count == 0) return any_space;
  if (shared.space_names[last] == other_names) return last;
  shared.space_names[last] = other_names;
  if (shared.define_space != nullptr) shared.define_space(shared, last);
  return last;
}

[[noreturn, gnu::cold]] inline void raise_too_many_spaces(std::string_view name) {
  raise("memory_space: cannot add '" + std::string{name} + "': a process has at most " +
        std::to_string(registry::max_spaces - 1) + " named memory spaces; give blocks of the same kind the same space");
}

}  // namespace detail

/// A named kind of memory whose blocks are counted together: `cpu`, `cuda:0`, `dram`. A name denotes one space in the whole
/// process.
class memory_space {
 public:
  /// The space with that name; from the 255th distinct name on, one that stands for all others. Takes a lock: create it once, not
  /// for each event.
  ///
  /// `memory` names the memory that it shares with other spaces, for which profiles report a joint peak. If it is empty or equal
  /// to `name`, the space has a memory to itself. The memory of `cpu` is `host_memory_name`. `memory` only matters when the space
  /// is new in the process.
  explicit memory_space(std::string_view name, std::string_view memory = {}) noexcept {
    const detail::control_guard control;
    id_ = detail::id_of_space(abi_1::process_registry, name, memory);
    if (id_ == extend::any_space) id_ = detail::id_of_other_spaces(abi_1::process_registry);
  }

  [[nodiscard]] std::uint8_t id() const noexcept { return id_; }
  operator extend::space_id() const noexcept { return {id_}; }  // implicit, because event writers take one
  bool operator==(const memory_space&) const = default;

 private:
  std::uint8_t id_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI
