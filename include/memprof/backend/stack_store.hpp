#pragma once

#include <memprof/backend/stack_modules.hpp>
#include <memprof/config.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/registry.hpp>
#include <memprof/record/stack_recorder.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/stack_name.hpp>

#if MEMPROF_ENABLED

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// The addresses of a stack, and the hash of each outer part of it.
struct walked_stack {
  void* const* frames;  ///< innermost first
  std::size_t count;
  std::uint64_t hashes[max_stack_frames + 1];  ///< of so many frames, from the outermost on

  walked_stack(void* const* walked, std::size_t found) noexcept : frames(walked), count(found) {
    std::uint64_t hash = 0x9E3779B97F4A7C15U;
    hashes[0] = hash;
    for (std::size_t index = 0; index < count; ++index) {
      hash = (hash ^ address(index)) * 0xD6E8FEB86659FD93U;
      hash ^= hash >> 32;
      hashes[index + 1] = hash == 0 ? 1 : hash;
    }
  }

  /// From the outermost on.
  [[nodiscard]] std::uintptr_t address(std::size_t index) const noexcept {
    return reinterpret_cast<std::uintptr_t>(frames[count - 1 - index]);
  }
  [[nodiscard]] std::uint64_t hash() const noexcept { return hashes[count]; }
};

/// Gives each stack one name. Stacks are compared by a 64-bit hash: with `most_stacks` of them, the probability that any two
/// collide is 5e-10.
class stack_store {
 public:
  static constexpr std::size_t most_stacks = std::size_t{1} << 17;
  static constexpr std::size_t most_text_bytes = std::size_t{16} << 20;

  constexpr stack_store() noexcept = default;

  /// The name of a known stack, else 0. Takes no lock.
  [[nodiscard]] label find(std::uint64_t hash) const noexcept {
    // Acquire pairs with the release in `grow`.
    const known_table* const table = known_.load(std::memory_order_acquire);
    if (table == nullptr) return 0;
    for (std::size_t slot = slot_of(hash);; ++slot) {
      const known& entry = table->entries()[slot & table->mask];
      // Acquire pairs with the release in `remember`.
      const std::uint64_t seen = entry.hash.load(std::memory_order_acquire);
      if (seen == hash) [[likely]]
        return entry.stack;
      if (seen == 0) return 0;
    }
  }

  /// The same for one that may be new; 0 if there is no room. `modules` has the module of each frame, innermost first. Under the
  /// registry's lock.
  [[nodiscard]] label add(registry& shared, abi_1::stack_recorder& sizes, const walked_stack& stack,
                          const loaded_module* modules) noexcept {
    if (const label found = find(stack.hash()); found != 0) return found;  // another thread was faster
    if (count_ == most_stacks || sizes.text_bytes > most_text_bytes || !reserve(stack.count)) return 0;
    const std::size_t shared_frames = shared_part(stack);
    stack_text text{shared_frames == 0 ? 0 : outer_part(stack.hashes[shared_frames])->stack, shared_frames};
    for (std::size_t index = shared_frames; index < stack.count; ++index) {
      const loaded_module& module = modules[stack.count - 1 - index];
      const label file = module.begin == 0 ? 0 : name_of(shared, sizes, module);
      text.add({file, stack.address(index) - (file == 0 ? 0 : module.bias)});
    }
    const label name = intern_own(shared, sizes, text.view());
    if (name == 0) return 0;
    for (std::size_t index = shared_frames + 1; index <= stack.count; ++index)
      *outer_part(stack.hashes[index]) = {stack.hashes[index], name};
    parts_used_ += stack.count - shared_frames;
    remember(*known_.load(std::memory_order_relaxed), stack.hash(), name);
    ++count_;
    sizes.bytes = known_bytes_ + parts_.bytes() + modules_.bytes();
    return name;
  }

 private:
  struct known {
    std::atomic<std::uint64_t> hash;
    label stack;
  };
  struct known_table {
    std::size_t mask;

    [[nodiscard]] known* entries() noexcept { return reinterpret_cast<known*>(this + 1); }
    [[nodiscard]] const known* entries() const noexcept { return reinterpret_cast<const known*>(this + 1); }
    [[nodiscard]] static std::size_t bytes_for(std::size_t slots) noexcept { return sizeof(known_table) + slots * sizeof(known); }
  };
  /// The outer frames of a stack, and the name of one that has them.
  struct part {
    std::uint64_t hash;
    label stack;
  };
  struct named_module {
    loaded_module module;
    label name;
  };

  [[nodiscard]] static std::size_t slot_of(std::uint64_t hash) noexcept { return std::size_t{hash >> 20}; }

  [[nodiscard]] label intern_own(registry& shared, abi_1::stack_recorder& sizes, std::string_view text) noexcept {
    const std::size_t before = shared.labels == nullptr ? 0 : shared.labels->size();
    const label name = intern(shared, text, label_limits{});
    if (name == other_names || name == 0) return 0;
    if (shared.labels->size() != before) ++sizes.names, sizes.text_bytes += text.size();
    return name;
  }

  [[nodiscard]] label name_of(registry& shared, abi_1::stack_recorder& sizes, const loaded_module& module) noexcept {
    if (last_module_ < modules_.size() && modules_[last_module_].module == module) return modules_[last_module_].name;
    for (last_module_ = 0; last_module_ < modules_.size(); ++last_module_) {
      if (modules_[last_module_].module == module) return modules_[last_module_].name;
    }
    const label name = intern_own(shared, sizes, module_name{module}.view());
    if (name != 0 && !modules_.push_back({module, name})) return name;  // it is looked for again
    return name;
  }

  /// How many outer frames the stack has in common with those so far.
  [[nodiscard]] std::size_t shared_part(const walked_stack& stack) noexcept {
    std::size_t begin = 0;
    std::size_t end = stack.count + 1;
    while (end - begin > 1) {
      const std::size_t middle = begin + (end - begin) / 2;
      (outer_part(stack.hashes[middle])->hash != 0 ? begin : end) = middle;
    }
    return begin;
  }
  /// The place of a part: with hash 0 if it is not there.
  [[nodiscard]] part* outer_part(std::uint64_t hash) noexcept {
    std::size_t slot = slot_of(hash);
    while (parts_[slot & (parts_.size() - 1)].hash != 0 && parts_[slot & (parts_.size() - 1)].hash != hash) ++slot;
    return &parts_[slot & (parts_.size() - 1)];
  }

  static void remember(known_table& table, std::uint64_t hash, label stack) noexcept {
    std::size_t slot = slot_of(hash);
    while (table.entries()[slot & table.mask].hash.load(std::memory_order_relaxed) != 0) ++slot;
    known& free = table.entries()[slot & table.mask];
    free.stack = stack;
    free.hash.store(hash, std::memory_order_release);
  }

  /// Makes room for a stack with that many frames. False if the system has no memory.
  [[nodiscard]] bool reserve(std::size_t frames) noexcept {
    if (2 * (parts_used_ + frames) > parts_.size() && !grow_parts()) return false;
    known_table* const table = known_.load(std::memory_order_relaxed);
    return (table != nullptr && 2 * (count_ + 1) <= table->mask + 1) || grow(table);
  }
  [[nodiscard]] bool grow_parts() noexcept {
    page_array<part> before;
    std::swap(before, parts_);
    if (!parts_.resize(before.empty() ? 1024 : 2 * before.size())) {
      std::swap(before, parts_);
      return false;
    }
    for (const part& each : before) {
      if (each.hash != 0) *outer_part(each.hash) = each;
    }
    return true;
  }
  /// Threads may still be searching the smaller table, so that stays where it is; all of them together are as large as the last.
  [[nodiscard]] bool grow(const known_table* before) noexcept {
    const std::size_t slots = before == nullptr ? 1024 : 2 * (before->mask + 1);
    void* const pages = map_pages(known_table::bytes_for(slots));
    if (pages == nullptr) return false;
    auto* const table = new (pages) known_table{slots - 1};
    for (std::size_t slot = 0; before != nullptr && slot <= before->mask; ++slot) {
      const known& entry = before->entries()[slot];
      if (const std::uint64_t hash = entry.hash.load(std::memory_order_relaxed); hash != 0) remember(*table, hash, entry.stack);
    }
    known_bytes_ += known_table::bytes_for(slots);
    known_.store(table, std::memory_order_release);
    return true;
  }

  std::atomic<known_table*> known_{nullptr};
  std::size_t known_bytes_ = 0;
  std::size_t count_ = 0;
  page_array<part> parts_;
  std::size_t parts_used_ = 0;
  page_array<named_module> modules_;
  std::size_t last_module_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
