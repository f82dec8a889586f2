#pragma once

#include <memprof/detail/page_array.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/profile/trace_fold.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/decoder.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/newest_facts.hpp>
#include <memprof/trace/trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Folds the events that a trace drops in a ledger of its own, so that the rest can begin with a saved state. Dropping costs as
/// much as folding the events, one chunk at a time; the state is made when the trace is read.
class folded_head final : public trace_head {
 public:
  /// Null if the system has no memory for it. In its own pages, because `operator new` may be the very thing under observation.
  [[nodiscard]] static folded_head* make() noexcept {
    void* const pages = map_pages(sizeof(folded_head));
    return pages == nullptr ? nullptr : new (pages) folded_head;
  }

  void info(const capture_info& info) override { fold_.info(info); }
  void name(label id, std::string_view text) noexcept override {
    fold_.name(id, text);
    names_ = std::max(names_, id);
  }
  void space(const space_definition& space) noexcept override {
    fold_.space(space);
    spaces_[space.id] = space;
    is_space_[space.id] = true;
  }
  void facts(fact_table&& table) override { facts_.put(table); }

  std::uint64_t drop(const unsigned char* bytes, std::size_t size) noexcept override {
    const std::uint64_t before = dropped_;
    events_only each{*this};
    decoder_.restart();
    (void)decoder_.decode(bytes, bytes + size, each);
    return dropped_ - before;
  }
  [[nodiscard]] std::uint64_t dropped() const noexcept override { return dropped_; }

  void write(trace& beginning) override {
    beginning.info(fold_.info());
    for (label id = 1; id <= names_; ++id) beginning.name(id, fold_.names().text(id));
    for (std::size_t id = 0; id < any_space; ++id) {
      if (is_space_[id]) beginning.space(spaces_[id]);
    }
    beginning.append(facts_.encoded());
    if (dropped_ == 0) return;
    const event gap{0, 0, dropped_, 0, event_kind::gap, any_space, 0};
    beginning.events(&gap, &gap + 1, no_ring_id);
    page_array<unsigned char> state;
    if (fold_.write_saved_state(state)) beginning.saved_state(state);  // otherwise the gap says that events are missing
  }

  [[nodiscard]] std::size_t bytes() const noexcept override {
    return sizeof(folded_head) - sizeof(trace_fold) + fold_.bytes() + facts_.encoded().bytes();
  }
  void destroy() noexcept override {
    this->~folded_head();
    unmap_pages(this, sizeof(folded_head));
  }

 private:
  struct events_only {
    folded_head& owner;
    void events(const event* first, const event* last, std::uint32_t ring) noexcept {
      owner.fold_.events(first, last, ring);
      owner.dropped_ += static_cast<std::uint64_t>(last - first);
    }
    void definition(control, std::string_view) noexcept {}  // chunks have none
  };

  folded_head() = default;
  ~folded_head() = default;

  trace_fold fold_;
  trace_decoder decoder_;
  std::uint64_t dropped_ = 0;
  label names_ = 0;
  newest_facts facts_;
  space_definition spaces_[any_space] = {};
  bool is_space_[any_space] = {};
};

/// Makes a trace keep only the newest events, within `bytes` (at least 64 KiB). False if the system has no memory for it.
[[nodiscard]] inline bool limit_trace(trace& target, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t smallest = 4096;
  constexpr std::uint64_t largest = std::uint64_t{256} * 1024;
  folded_head* const head = folded_head::make();
  if (head == nullptr) return false;
  target.keep_newest(std::size_t{bytes}, std::size_t{std::clamp(bytes / 16, smallest, largest)}, head);
  return true;
}

/// The smallest permitted `capture_options::trace_limit`.
inline constexpr std::uint64_t least_trace_limit = std::uint64_t{64} * 1024;

}  // namespace memprof::inline MEMPROF_ABI::detail
