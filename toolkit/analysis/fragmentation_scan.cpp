#include <memprof/config.hpp>
#include <memprof/ledger/allocator_event.hpp>
#include <memprof/ledger/facet/reserved.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/fragmentation.hpp>
#include <memprof/toolkit/analysis/fragmentation_scan.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/definitions.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// A visitor of the events of one memory space, which is known by its name.
class space_visitor {
 public:
  explicit space_visitor(std::string_view name) : name_(name) {}

  void info(const extend::capture_info&) {}
  void name(extend::label id, std::string_view text) {
    if (id == names_.size() + 1) names_.append(text);
  }
  void space(const extend::space_definition& space) {
    if (names_.text(space.name) == name_) space_ = space.id;
  }
  void facts(extend::fact_part&&) {}

 protected:
  [[nodiscard]] bool is_of_space(const extend::event& happened) const noexcept { return happened.space == space_; }
  [[nodiscard]] std::string_view text(extend::label id) const noexcept { return names_.text(id); }

 private:
  std::string_view name_;
  std::uint8_t space_ = extend::any_space;
  detail::label_table names_;
};

[[nodiscard]] bool is_allocation(extend::event_kind kind) noexcept {
  return kind == extend::event_kind::allocate || kind == extend::event_kind::allocate_on_stream;
}

/// Finds the events after which to divide.
class moment_search : public space_visitor {
 public:
  using space_visitor::space_visitor;

  void events(const extend::event* first, const extend::event* last, std::uint32_t) {
    for (; first != last; ++first, ++count_) {
      is_incomplete_ = is_incomplete_ || first->kind == extend::event_kind::gap;
      if (is_of_space(*first)) take(*first);
    }
  }

  [[nodiscard]] bool has_answer() const noexcept { return held_.peak() > 0 && !is_incomplete_; }
  [[nodiscard]] std::uint64_t peak() const noexcept { return peak_; }
  [[nodiscard]] const std::optional<std::uint64_t>& failure() const noexcept { return failure_; }

 private:
  void take(const extend::event& happened) {
    if (happened.kind == extend::event_kind::reserve) {
      const std::int64_t before = held_.peak();
      (void)held_.reserve(happened.address, happened.bytes);
      if (held_.peak() == before) return;
      peak_ = count_;
      awaits_block_ = true;
    } else if (is_allocation(happened.kind)) {
      if (std::exchange(awaits_block_, false)) peak_ = count_;
    } else {
      if (happened.kind == extend::event_kind::release) (void)held_.release(happened.address, happened.bytes);
      if (happened.kind == extend::event_kind::out_of_memory && !failure_) failure_ = count_;
      awaits_block_ = false;
    }
  }

  detail::reserved_ledger held_;
  std::uint64_t count_ = 0;
  std::uint64_t peak_ = 0;
  std::optional<std::uint64_t> failure_;
  bool awaits_block_ = false;  ///< that the last range was reserved for
  bool is_incomplete_ = false;
};

/// Keeps blocks and ranges up to the moments, and divides them there.
class fragmentation_fold : public space_visitor {
 public:
  fragmentation_fold(std::string_view space, const caching_allocator_options& settings, const moment_search& moments)
      : space_visitor(space), settings_(settings), moments_(moments), is_expandable_(settings.expandable_segments) {}

  void events(const extend::event* first, const extend::event* last, std::uint32_t ring) {
    for (; first != last && !is_done(); ++first, ++count_) {
      if (is_of_space(*first)) take(*first, ring);
      if (count_ == moments_.peak()) {
        found_.at_peak = moment(reserved_for_, 0);
        found_.outside = outside_;
      }
      if (count_ == moments_.failure()) {
        found_.at_failure = moment(asking_[ring], static_cast<std::int64_t>(first->bytes));
      }
    }
  }

  [[nodiscard]] const recorded_fragmentation& found() const noexcept { return found_; }

 private:
  struct range {
    std::uint64_t end;
    extend::label stream;
  };
  struct held_block {
    std::uint64_t bytes;
    bool is_pending;
  };

  [[nodiscard]] bool is_done() const noexcept { return count_ > moments_.peak() && count_ > moments_.failure().value_or(0); }

  void take(const extend::event& happened, std::uint32_t ring) {
    switch (happened.kind) {
      case extend::event_kind::allocate:
      case extend::event_kind::allocate_on_stream:
        asking_[ring] = happened.kind == extend::event_kind::allocate ? 0 : happened.label;
        allocate(happened);
        break;
      case extend::event_kind::deallocate: blocks_.erase(happened.address); break;
      case extend::event_kind::deallocate_on_stream: deallocate(happened); break;
      case extend::event_kind::complete_deallocation: complete(happened.address); break;
      case extend::event_kind::deallocate_range:
        std::erase_if(blocks_, [&](const auto& block) { return detail::is_in_range(happened, block.first); });
        break;
      case extend::event_kind::reserve: reserve(happened); break;
      case extend::event_kind::release: release(happened); break;
      default: break;
    }
  }

  void allocate(const extend::event& happened) {
    blocks_[happened.address] = {happened.bytes, false};
    if (is_expandable_) return;
    const auto next = ranges_.upper_bound(happened.address);
    if (next == ranges_.begin()) return;
    const range& held = std::prev(next)->second;
    const bool goes_on = next != ranges_.end() && next->first == held.end && next->second.stream == held.stream;
    is_expandable_ = goes_on && happened.address < held.end && happened.address + happened.bytes > held.end;
  }

  void deallocate(const extend::event& happened) {
    const auto found = blocks_.find(happened.address);
    if (found == blocks_.end()) return;
    if (happened.tag == 0) {
      blocks_.erase(found);
    } else {
      found->second.is_pending = true;
    }
  }

  void complete(std::uint64_t address) {
    const auto found = blocks_.find(address);
    if (found != blocks_.end() && found->second.is_pending) blocks_.erase(found);
  }

  void reserve(const extend::event& happened) {
    const std::uint64_t end = happened.address + happened.bytes;
    if (end <= happened.address) return;
    take_out(happened.address, end);
    ranges_[happened.address] = {end, happened.label};
    reserved_for_ = happened.label;
  }

  void release(const extend::event& happened) {
    const auto found = ranges_.find(happened.address);
    if (happened.bytes == 0 && found == ranges_.end()) return;
    take_out(happened.address, happened.bytes == 0 ? found->second.end : happened.address + happened.bytes);
  }

  void take_out(std::uint64_t begin, std::uint64_t end) {
    auto next = ranges_.lower_bound(begin);
    if (next != ranges_.begin() && std::prev(next)->second.end > begin) --next;
    while (next != ranges_.end() && next->first < end) {
      const std::uint64_t old_begin = next->first;
      const range old = next->second;
      next = ranges_.erase(next);
      if (old_begin < begin) ranges_[old_begin] = {begin, old.stream};
      if (old.end > end) ranges_[end] = old;
    }
  }

  /// What the allocator adds to a block, of at most `free` bytes behind it. A large segment of a fixed size leaves a rest of up
  /// to 1 MiB with the block before it.
  [[nodiscard]] std::int64_t rounding_of(std::int64_t bytes, std::int64_t free) const noexcept {
    const std::int64_t size = detail::block_size(settings_, bytes);
    const std::int64_t added = std::min(free, size - bytes);
    const bool keeps_rest = !is_expandable_ && size > detail::largest_small_block && free - added <= detail::largest_small_block;
    return keeps_rest ? free : added;
  }

  [[nodiscard]] fragmentation_moment moment(extend::label asking, std::int64_t requested) {
    std::vector<std::pair<std::uint64_t, held_block>> sorted{blocks_.begin(), blocks_.end()};
    std::sort(sorted.begin(), sorted.end(), [](const auto& left, const auto& right) { return left.first < right.first; });
    detail::segment_division parts;
    outside_ = 0;
    auto block = sorted.cbegin();
    for (auto next = ranges_.cbegin(); next != ranges_.cend();) {
      const std::uint64_t begin = next->first;
      const extend::label stream = next->second.stream;
      std::uint64_t end = next->second.end;
      for (++next; is_expandable_ && next != ranges_.cend() && next->first == end && next->second.stream == stream; ++next) {
        end = next->second.end;
      }
      for (; block != sorted.cend() && block->first < begin; ++block) outside_ += static_cast<std::int64_t>(block->second.bytes);
      parts.begin(stream == asking);
      divide(parts, begin, end, block, sorted.cend());
      parts.end();
    }
    for (; block != sorted.cend(); ++block) outside_ += static_cast<std::int64_t>(block->second.bytes);
    return {count_, requested, std::string{text(asking)}, parts.sums()};
  }

  /// Adds the blocks in [begin, end), cut where they overlap, and what is free between them.
  template <class Iterator>
  void divide(detail::segment_division& parts, std::uint64_t begin, std::uint64_t end, Iterator& block, Iterator last) const {
    const auto distance = [](std::uint64_t from, std::uint64_t to) { return static_cast<std::int64_t>(to - from); };
    std::uint64_t at = begin;
    while (block != last && block->first < end) {
      const std::uint64_t first = std::max(block->first, at);
      const std::uint64_t behind = std::max(first, std::min(end, block->first + block->second.bytes));
      const bool is_pending = block->second.is_pending;
      ++block;
      if (behind == first) continue;
      const std::uint64_t limit = block != last && block->first < end ? std::max(behind, block->first) : end;
      const std::int64_t bytes = distance(first, behind);
      const std::int64_t added = rounding_of(bytes, distance(behind, limit));
      parts.add_free(distance(at, first));
      parts.add_block(bytes + added, bytes, is_pending);
      at = behind + static_cast<std::uint64_t>(added);
    }
    parts.add_free(distance(at, end));
  }

  const caching_allocator_options& settings_;
  const moment_search& moments_;
  recorded_fragmentation found_;
  std::int64_t outside_ = 0;
  std::uint64_t count_ = 0;
  std::map<std::uint64_t, range> ranges_;
  std::unordered_map<std::uint64_t, held_block> blocks_;
  std::unordered_map<std::uint32_t, extend::label> asking_;  ///< the stream of each thread's last allocation
  extend::label reserved_for_ = 0;
  bool is_expandable_;
};

}  // namespace

std::optional<recorded_fragmentation> fragmentation_in(const trace_source_view& source, std::string_view space,
                                                       const caching_allocator_options& settings) {
  moment_search moments{space};
  source.visit(moments);
  if (!moments.has_answer()) return std::nullopt;
  fragmentation_fold fold{space, settings, moments};
  source.visit(fold);
  return fold.found();
}

}  // namespace memprof::inline MEMPROF_ABI
