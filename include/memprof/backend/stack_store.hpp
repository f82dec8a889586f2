#pragma once

#include <memprof/backend/lasting_table.hpp>
#include <memprof/backend/stack_modules.hpp>
#include <memprof/backend/stack_parts.hpp>
#include <memprof/backend/walked_stack.hpp>
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

/// Gives each stack one name. Stacks are compared by a 64-bit hash: with `most_stacks` of them, the probability that any two
/// collide is 5e-10.
class stack_store {
 public:
  static constexpr std::size_t most_stacks = std::size_t{1} << 17;
  static constexpr std::size_t most_text_bytes = std::size_t{16} << 20;

  constexpr stack_store() noexcept = default;

  /// The name of a known stack, else 0. Takes no lock.
  [[nodiscard]] label find(std::uint64_t hash) const noexcept {
    const label* const found = known_.find(hash);
    return found == nullptr ? 0 : *found;
  }

  /// The same for one that may be new; 0 if there is no room. `modules` has the module of each frame, innermost first. Under the
  /// registry's lock.
  [[nodiscard]] label add(registry& shared, abi_1::stack_recorder& sizes, const walked_stack& stack,
                          const loaded_module* modules) noexcept {
    if (const label found = find(stack.hash()); found != 0) return found;  // another thread was faster
    if (known_.size() == most_stacks || sizes.text_bytes > most_text_bytes || !reserve(stack.count)) return 0;
    const stack_part outer = outer_parts_.longest(stack.count, [&](std::size_t frames) { return stack.hashes[frames]; });
    const std::size_t left = stack.count - outer.frames;
    std::uint64_t inner_hashes[max_stack_frames + 1];
    stack.hash_inner_frames(left, inner_hashes);
    const stack_part inner = inner_parts_.longest(left, [&](std::size_t frames) { return inner_hashes[frames]; });
    const stack_part ending = inner.frames < least_inner_frames ? stack_part{} : inner;
    stack_text text{outer, ending};
    for (std::size_t index = outer.frames; index < stack.count - ending.frames; ++index) {
      const loaded_module& module = modules[stack.count - 1 - index];
      const label file = module.begin == 0 ? 0 : name_of(shared, sizes, module);
      text.add({file, stack.address(index) - (file == 0 ? 0 : module.bias)});
    }
    const label name = intern_own(shared, sizes, text.view());
    if (name == 0) return 0;
    for (std::size_t frames = outer.frames + 1; frames <= stack.count; ++frames) outer_parts_.add(stack.hashes[frames], name);
    for (std::size_t frames = inner.frames + 1; frames <= left; ++frames) inner_parts_.add(inner_hashes[frames], name);
    (void)known_.add(stack.hash(), name);
    return name;
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    return known_.bytes() + outer_parts_.bytes() + inner_parts_.bytes() + modules_.bytes();
  }

 private:
  /// A frame takes as many bytes as a reference to another stack.
  static constexpr std::size_t least_inner_frames = 2;

  struct named_module {
    loaded_module module;
    label name;
  };

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
    const label name = intern_own(shared, sizes, module_name_.of(module));
    if (name != 0 && !modules_.push_back({module, name})) return name;  // it is looked for again
    return name;
  }

  /// Makes room for a stack with that many frames. False if the system has no memory.
  [[nodiscard]] bool reserve(std::size_t frames) noexcept {
    return outer_parts_.reserve(frames) && inner_parts_.reserve(frames) && known_.reserve_one();
  }

  lasting_table<label> known_;
  stack_parts outer_parts_;
  stack_parts inner_parts_;
  page_array<named_module> modules_;
  std::size_t last_module_ = 0;
  module_name module_name_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
