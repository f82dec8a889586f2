#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/trace/label.hpp>

#include <cstdint>
#include <new>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

struct saved_threads;
struct thread_scopes;
class spare_scope_stacks;

/// One open operation of a thread, or the part of its stack in which it works for an operation of another thread.
struct open_scope {
  std::uint32_t operation;
  label name;
  std::uint32_t number;  ///< as counted by its thread
  std::uint16_t tag;     ///< category of its allocations, plus one; 0: none given here or in an enclosing scope
  bool is_adopted;       ///< no invocation of its own: what happens within it is the other thread's operation's
  std::uint64_t begin_stamp = 0;
};

/// Whose operation an `open_scope` stands for.
struct adoption {
  thread_scopes* leader;       ///< the thread that had it open; null: it had ended
  std::uint32_t leader_scope;  ///< the operation's number on that thread
  std::uint32_t leader_era;    ///< its `thread_scopes::era` then: a later thread of the ring may use the number again
};

/// Usage of one memory space while one scope was open on its thread.
struct scope_usage {
  std::int64_t self_net;   ///< bytes allocated minus bytes freed in this scope itself
  std::int64_t self_max;   ///< greatest `self_net`
  std::int64_t inner_net;  ///< the same for nested scopes that have ended
  std::int64_t max_net;    ///< greatest `self_net + inner_net`, counting what inner scopes reached meanwhile

  void allocate(std::int64_t bytes) noexcept {
    self_net += bytes;
    if (self_net > self_max) self_max = self_net;
    if (self_net + inner_net > max_net) max_net = self_net + inner_net;
  }
  void deallocate(std::int64_t bytes) noexcept { self_net -= bytes; }

  /// Adds the usage of a while in which nothing else within this scope changed.
  void add(const scope_usage& window, bool is_self) noexcept {
    if (net() + window.self_max > max_net) max_net = net() + window.self_max;
    if (is_self && self_net + window.self_max > self_max) self_max = self_net + window.self_max;
    (is_self ? self_net : inner_net) += window.self_net;
  }

  [[nodiscard]] std::int64_t net() const noexcept { return self_net + inner_net; }
  /// The greatest net of this scope if the scope nested in it, open or just ended, reached `inner_max`.
  [[nodiscard]] std::int64_t max_with(std::int64_t inner_max) const noexcept {
    return net() + inner_max > max_net ? net() + inner_max : max_net;
  }
};

/// Usage of one memory space by a thread's open operations: entry 0 is the thread outside any operation, which no result shows.
using space_scopes = page_array<scope_usage>;

/// The operations open on one thread, in order, with their running usage of each memory space touched inside one of them.
///
/// The usage of an operation contains that of nested ones only once they have ended, unless other threads may change it too
/// (`join`).
///
/// A thread that has never opened an operation takes no memory beyond the object.
class scope_stack {
 public:
  static constexpr std::uint32_t max_spaces = 256;
  /// Programs nest about ten operations. A program that forgets to end them is counted but not followed further.
  static constexpr std::size_t max_depth = 256;

  scope_stack() = default;
  scope_stack(const scope_stack&) = delete;
  scope_stack& operator=(const scope_stack&) = delete;
  ~scope_stack() {
    if (table_ != nullptr) destroy(table_);
  }

  [[nodiscard]] bool empty() const noexcept { return scopes_.empty(); }
  [[nodiscard]] std::size_t depth() const noexcept { return scopes_.size(); }
  [[nodiscard]] const open_scope& operator[](std::size_t index) const noexcept { return scopes_[index]; }
  [[nodiscard]] const open_scope& innermost() const noexcept { return scopes_[scopes_.size() - 1]; }
  /// 0 if no scope is open.
  [[nodiscard]] std::uint32_t innermost_number() const noexcept { return scopes_.empty() ? 0 : innermost().number; }
  [[nodiscard]] std::uint32_t operation() const noexcept { return scopes_.empty() ? 0 : innermost().operation; }
  [[nodiscard]] std::uint16_t tag() const noexcept { return scopes_.empty() ? std::uint16_t{0} : innermost().tag; }

  /// Whether each scope's usage always contains that of the scopes nested in it, on whichever thread they are.
  [[nodiscard]] bool is_joined() const noexcept { return is_joined_; }
  /// Makes it so for ever, or no longer; requires that no scope is open.
  void join_always(bool always) noexcept { is_joined_ = is_always_joined_ = always; }
  /// Makes it so, until no scope is open.
  void join() noexcept {
    if (scopes_.empty() || std::exchange(is_joined_, true)) return;
    for (std::uint32_t used = 0; used < used_count_; ++used) {
      space_scopes& scopes = table_->scopes[table_->used[used]];
      for (std::size_t inner = scopes.size(); --inner > 0;) {
        scopes[inner - 1].max_net = scopes[inner - 1].max_with(scopes[inner].max_net);
        scopes[inner - 1].inner_net += scopes[inner].net();
      }
    }
  }

  /// Opens a scope that stands for another thread's. False, with nothing changed, if the system has no memory.
  [[nodiscard]] bool push(const open_scope& scope, const adoption& of) noexcept {
    if (!adoptions_.push_back(of)) return false;
    if (push(scope)) return true;
    adoptions_.pop_back();
    return false;
  }
  /// What the adopted scope at `index` stands for.
  [[nodiscard]] const adoption& adopted_at(std::size_t index) const noexcept { return adoptions_[adoptions_before(index)]; }

  /// Opens a scope. False, with nothing changed, if the system has no memory.
  [[nodiscard, gnu::always_inline]] bool push(const open_scope& scope) noexcept {
    if (!scopes_.push_back(scope)) return false;
    for (std::uint32_t index = 0; index < used_count_; ++index) {
      if (table_->scopes[table_->used[index]].push_back({})) continue;
      while (index-- > 0) table_->scopes[table_->used[index]].pop_back();
      scopes_.pop_back();
      return false;
    }
    return true;
  }

  /// Index of the scope with that number, from the outermost; `depth()` if it is not open.
  [[nodiscard]] std::size_t find(std::uint32_t number) const noexcept {
    // The innermost nearly always ends next.
    for (std::size_t index = scopes_.size(); index-- > 0;) {
      if (scopes_[index].number == number) return index;
    }
    return scopes_.size();
  }

  /// Closes the scope at `index` and calls `finish(scope, space, usage)` for each space that has usage; `usage`
  /// includes nested scopes that have ended. Nested scopes that are still open continue in the enclosing one.
  template <class Finish>
  void close(std::size_t index, Finish&& finish) noexcept {
    for (std::uint32_t used = 0; used < used_count_; ++used) {
      space_scopes& scopes = table_->scopes[table_->used[used]];
      const std::size_t position = index + 1;  // entry 0 is outside any operation
      if (is_joined_) {
        finish(scopes_[index], table_->used[used], scopes[position]);
        scopes.erase(position);
        continue;
      }
      std::int64_t inner_net = 0;
      std::int64_t inner_max = 0;
      for (std::size_t inner = scopes.size() - 1; inner > position; --inner) {
        inner_max = scopes[inner].max_with(inner_max);
        inner_net += scopes[inner].net();
      }
      scope_usage ended = scopes[position];
      ended.max_net = ended.max_with(inner_max);
      scope_usage& outer = scopes[position - 1];
      outer.max_net = outer.max_with(ended.max_net);
      outer.inner_net += ended.net();
      ended.inner_net += inner_net;
      scopes.erase(position);
      finish(scopes_[index], table_->used[used], ended);
    }
    if (scopes_[index].is_adopted) adoptions_.erase(adoptions_before(index));
    scopes_.erase(index);
    if (scopes_.empty()) is_joined_ = is_always_joined_;
  }

  /// The same for the innermost scope of a stack that is not joined.
  template <class Finish>
  void close_innermost(Finish&& finish) noexcept {
    for (std::uint32_t index = 0; index < used_count_; ++index) {
      space_scopes& scopes = table_->scopes[table_->used[index]];
      const scope_usage ended = scopes.back();
      scopes.pop_back();
      scope_usage& outer = scopes.back();
      outer.max_net = outer.max_with(ended.max_net);
      outer.inner_net += ended.net();
      finish(innermost(), table_->used[index], ended);
    }
    scopes_.pop_back();
  }

  /// The space's usage by open scopes, created when the thread first touches the space; null if there is no memory.
  [[nodiscard]] space_scopes* in_space(std::uint8_t space) noexcept {
    if (knows(space)) [[likely]]
      return &table_->scopes[space];
    if (table_ == nullptr && !make_table()) return nullptr;
    space_scopes& scopes = table_->scopes[space];
    if (!scopes.resize(scopes_.size() + 1)) return nullptr;
    table_->used[used_count_++] = space;
    return &scopes;
  }
  /// Whether the space has usage by open scopes.
  [[nodiscard]] bool knows(std::uint8_t space) const noexcept { return table_ != nullptr && !table_->scopes[space].empty(); }

  /// Calls `visit(space, scopes)` for each space that has usage.
  template <class Visitor>
  void for_each_space(Visitor&& visit) const {
    for (std::uint32_t index = 0; index < used_count_; ++index)
      visit(table_->used[index], std::as_const(table_->scopes[table_->used[index]]));
  }

  [[nodiscard]] bool has_memory() const noexcept { return table_ != nullptr || scopes_.bytes() != 0; }
  /// Bytes taken from the system, without the object itself.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return scopes_.bytes() + adoptions_.bytes() + (table_ == nullptr ? 0 : bytes_of(*table_));
  }

 private:
  friend struct saved_threads;
  friend class spare_scope_stacks;

  struct space_table {
    std::uint8_t used[max_spaces] = {};  ///< the spaces with usage, in order of first use
    space_scopes scopes[max_spaces];     ///< empty: none
    // While it is spare:
    page_array<open_scope> spare_scopes;
    space_table* next_spare = nullptr;
  };

  [[nodiscard]] std::size_t adoptions_before(std::size_t index) const noexcept {
    std::size_t count = 0;
    for (std::size_t outer = 0; outer < index; ++outer) {
      if (scopes_[outer].is_adopted) ++count;
    }
    return count;
  }
  [[nodiscard]] bool make_table() noexcept {
    void* const pages = map_pages(sizeof(space_table));
    if (pages != nullptr) table_ = new (pages) space_table;
    return pages != nullptr;
  }
  [[nodiscard]] static std::size_t bytes_of(const space_table& table) noexcept {
    std::size_t total = sizeof table + table.spare_scopes.bytes();
    for (const space_scopes& scopes : table.scopes) total += scopes.bytes();
    return total;
  }
  static void destroy(space_table* table) noexcept {
    table->~space_table();
    unmap_pages(table, sizeof(space_table));
  }

  page_array<open_scope> scopes_;
  space_table* table_ = nullptr;  ///< in pages of its own; null until an operation touches a space
  std::uint32_t used_count_ = 0;
  bool is_joined_ = false;
  bool is_always_joined_ = false;
  page_array<adoption> adoptions_;  ///< of the adopted scopes, in their order
};

/// The memory of stacks that are empty again, for those that will open the next operations: however many threads there were, it
/// is what those that were inside operations at the same time needed.
class spare_scope_stacks {
 public:
  spare_scope_stacks() = default;
  spare_scope_stacks(spare_scope_stacks&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
  spare_scope_stacks& operator=(spare_scope_stacks&& other) noexcept {
    std::swap(first_, other.first_);
    return *this;
  }
  ~spare_scope_stacks() {
    while (first_ != nullptr) scope_stack::destroy(std::exchange(first_, first_->next_spare));
  }

  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  /// Hands spare memory, if there is any, to a stack that has none.
  void give(scope_stack& to) noexcept {
    if (first_ == nullptr) return;
    to.table_ = std::exchange(first_, first_->next_spare);
    to.scopes_ = std::move(to.table_->spare_scopes);
  }
  /// Takes the memory of a stack without open operations, and its usage outside them.
  void take(scope_stack& from) noexcept {
    if (from.table_ == nullptr && !from.make_table()) return;  // then it keeps what little it has
    scope_stack::space_table& table = *from.table_;
    for (; from.used_count_ != 0; --from.used_count_) table.scopes[table.used[from.used_count_ - 1]].clear();
    table.spare_scopes = std::move(from.scopes_);
    table.next_spare = std::exchange(first_, std::exchange(from.table_, nullptr));
  }

  /// Bytes taken from the system.
  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t total = 0;
    for (const scope_stack::space_table* table = first_; table != nullptr; table = table->next_spare)
      total += scope_stack::bytes_of(*table);
    return total;
  }

 private:
  scope_stack::space_table* first_ = nullptr;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
