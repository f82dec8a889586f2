#pragma once

#include <memprof/core/label.hpp>
#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>

#include <cstdint>
#include <new>

namespace memprof {

/// One open operation of a thread.
struct open_scope {
  std::uint32_t operation;
  label name;
  std::uint32_t depth;
  std::uint16_t tag;  ///< category of what is allocated in it, plus one; 0: none was told here or further out
};

/// What happened in one memory space while one scope was open on its thread.
struct scope_usage {
  std::int64_t self_net;   ///< bytes allocated minus bytes freed in this scope itself
  std::int64_t self_max;   ///< greatest `self_net`
  std::int64_t inner_net;  ///< the same of the scopes within that have ended
  std::int64_t max_net;    ///< greatest `self_net + inner_net`, counting what inner scopes reached meanwhile

  void allocate(std::int64_t bytes) noexcept {
    self_net += bytes;
    if (self_net > self_max) self_max = self_net;
    if (self_net + inner_net > max_net) max_net = self_net + inner_net;
  }
  void deallocate(std::int64_t bytes) noexcept { self_net -= bytes; }

  [[nodiscard]] std::int64_t net() const noexcept { return self_net + inner_net; }
  /// The greatest net of this scope if the scope within it, now open or just ended, reached `inner_max`.
  [[nodiscard]] std::int64_t max_with(std::int64_t inner_max) const noexcept {
    return net() + inner_max > max_net ? net() + inner_max : max_net;
  }
};

/// The usage of one thread's open operations in one memory space: entry 0 is the thread outside any operation.
using space_scopes = detail::page_array<scope_usage>;

/// The operations open on one thread, in order, with their running usage in each memory space the thread touched.
class scope_stack {
 public:
  static constexpr std::uint32_t max_spaces = 256;

  scope_stack() = default;
  scope_stack(const scope_stack&) = delete;
  scope_stack& operator=(const scope_stack&) = delete;
  ~scope_stack() {
    for (std::uint32_t index = 0; index < used_count_; ++index) {
      space_scopes* const scopes = by_space_[used_[index]];
      scopes->~space_scopes();
      detail::unmap_pages(scopes, sizeof(space_scopes));
    }
  }

  [[nodiscard]] bool empty() const noexcept { return scopes_.empty(); }
  [[nodiscard]] std::size_t depth() const noexcept { return scopes_.size(); }
  [[nodiscard]] const open_scope& operator[](std::size_t index) const noexcept { return scopes_[index]; }
  [[nodiscard]] const open_scope& innermost() const noexcept { return scopes_[scopes_.size() - 1]; }
  [[nodiscard]] std::uint32_t operation() const noexcept { return scopes_.empty() ? 0 : innermost().operation; }
  [[nodiscard]] std::uint16_t tag() const noexcept { return scopes_.empty() ? std::uint16_t{0} : innermost().tag; }

  /// Opens a scope; false if the system has no memory, and then nothing changed.
  [[nodiscard]] bool push(const open_scope& scope) noexcept {
    if (!scopes_.push_back(scope)) return false;
    for (std::uint32_t index = 0; index < used_count_; ++index) {
      if (by_space_[used_[index]]->push_back({})) continue;
      while (index-- > 0) by_space_[used_[index]]->pop_back();
      scopes_.pop_back();
      return false;
    }
    return true;
  }

  /// Closes the innermost scope and calls `finish(space, usage)` for each space this thread touched.
  template <class Finish>
  void pop(Finish&& finish) noexcept {
    for (std::uint32_t index = 0; index < used_count_; ++index) {
      space_scopes& scopes = *by_space_[used_[index]];
      const scope_usage ended = scopes.back();
      scopes.pop_back();
      scope_usage& outer = scopes.back();
      outer.max_net = outer.max_with(ended.max_net);
      outer.inner_net += ended.net();
      finish(used_[index], ended);
    }
    scopes_.pop_back();
  }

  /// The usage of the space's open scopes, made when the thread first touches the space; null if there is no memory.
  [[nodiscard]] space_scopes* in_space(std::uint8_t space) noexcept {
    if (by_space_[space] != nullptr) [[likely]]
      return by_space_[space];
    void* const pages = detail::map_pages(sizeof(space_scopes));
    if (pages == nullptr) return nullptr;
    space_scopes* const scopes = new (pages) space_scopes;
    if (!scopes->resize(scopes_.size() + 1)) {
      detail::unmap_pages(pages, sizeof(space_scopes));
      return nullptr;
    }
    by_space_[space] = scopes;
    used_[used_count_++] = space;
    return scopes;
  }

  /// Calls `visit(space, scopes)` for each space this thread touched.
  template <class Visitor>
  void for_each_space(Visitor&& visit) const {
    for (std::uint32_t index = 0; index < used_count_; ++index) visit(used_[index], *by_space_[used_[index]]);
  }

  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = scopes_.bytes();
    for_each_space([&](std::uint8_t, const space_scopes& scopes) { total += sizeof(space_scopes) + scopes.bytes(); });
    return total;
  }

 private:
  detail::page_array<open_scope> scopes_;
  std::uint32_t used_count_ = 0;
  std::uint8_t used_[max_spaces] = {};
  space_scopes* by_space_[max_spaces] = {};
};

}  // namespace memprof
