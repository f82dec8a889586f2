#include "claimed_allocator.hpp"

#include <memprof/record/event_sink.hpp>

#include <algorithm>
#include <cstdio>

namespace memprof_python {
namespace {

/// As PyTorch writes sizes.
[[nodiscard]] std::string size_text(std::int64_t bytes) {
  struct unit {
    std::int64_t bytes;
    const char* name;
  };
  char text[48];
  for (const unit& each : {unit{std::int64_t{1} << 30, "GiB"}, unit{std::int64_t{1} << 20, "MiB"}, unit{1 << 10, "KiB"}}) {
    if (bytes < each.bytes) continue;
    std::snprintf(text, sizeof text, "%.2f %s", static_cast<double>(bytes) / static_cast<double>(each.bytes), each.name);
    return text;
  }
  return std::to_string(bytes) + " bytes";
}

}  // namespace

void claimed_allocator::begin(const memprof::caching_allocator_options& options) {
  auto model = std::make_unique<memprof::caching_allocator>(
      options, [this](memprof::segment_action action, std::uint64_t address, std::int64_t bytes) {
        note({action, address, bytes});
      });
  const std::lock_guard locked{lock_};
  blocks_.clear();
  changes_.clear();
  stats_ = {};
  model_ = std::move(model);
}

claimed_allocator::statistics claimed_allocator::stats() const {
  const std::lock_guard locked{lock_};
  statistics found = stats_;
  if (model_) found.now = model_->stats();
  return found;
}

void claimed_allocator::reset_peaks() {
  const std::lock_guard locked{lock_};
  if (model_) model_->reset_peak_stats();
  stats_.blocks.reset_peak();
  stats_.segments.reset_peak();
}

void claimed_allocator::empty_cache() {
  std::vector<change> made;
  {
    const std::lock_guard locked{lock_};
    if (model_) model_->empty_cache();
    made.swap(changes_);
  }
  record_changes(made);
}

bool claimed_allocator::has_room(std::int64_t bytes, char* message, std::size_t room, std::int64_t& free_bytes) {
  std::vector<change> made;
  bool is_there = true;
  {
    const std::lock_guard locked{lock_};
    if (!model_ || model_->options().capacity == 0) return true;
    // The request that follows gets what this one has left in the cache.
    const memprof::cached_block* const block = model_->allocate(static_cast<std::uint64_t>(bytes));
    is_there = block != nullptr;
    if (is_there) {
      model_->deallocate(block);
    } else {
      free_bytes = std::max<std::int64_t>(model_->options().capacity - model_->stats().reserved_bytes.current, 0);
      std::snprintf(message, room, "%s", refusal(bytes).c_str());
    }
    made.swap(changes_);
  }
  record_changes(made);
  return is_there;
}

std::string claimed_allocator::refusal(std::int64_t bytes) const {
  const memprof::caching_allocator_stats& now = model_->stats();
  const std::int64_t capacity = model_->options().capacity;
  const std::int64_t reserved = now.reserved_bytes.current;
  return "CUDA out of memory. Tried to allocate " + size_text(bytes) + ". GPU 0 has a total capacity of " + size_text(capacity) +
         " of which " + size_text(std::max<std::int64_t>(capacity - reserved, 0)) + " is free. Of the allocated memory " +
         size_text(now.allocated_bytes.current) + " is allocated by PyTorch, and " +
         size_text(reserved - now.allocated_bytes.current) +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation. (A NO_DISPATCH capture: no memory is taken.)";
}

void claimed_allocator::allocate(const void* address, std::int64_t bytes) {
  std::vector<change> made;
  {
    const std::lock_guard locked{lock_};
    const memprof::cached_block* const block = model_ ? model_->allocate(static_cast<std::uint64_t>(bytes)) : nullptr;
    if (block != nullptr) {
      blocks_[address] = block;
      stats_.blocks.increase(1);
      ++stats_.all_blocks;
      stats_.all_requested += bytes;
      stats_.all_allocated += block->bytes;
    }
    made.swap(changes_);
  }
  record_changes(made);
}

void claimed_allocator::deallocate(const void* address) {
  const std::lock_guard locked{lock_};
  const auto known = blocks_.find(address);
  if (known == blocks_.end()) return;
  model_->deallocate(known->second);
  blocks_.erase(known);
  stats_.blocks.decrease(1);
}

void claimed_allocator::note(const change& made) {
  if (made.action == memprof::segment_action::reserve) {
    stats_.segments.increase(1);
    ++stats_.all_segments;
    stats_.all_reserved += made.bytes;
  } else {
    stats_.segments.decrease(1);
  }
  changes_.push_back(made);
}

void claimed_allocator::record_changes(const std::vector<change>& made) const {
  const memprof::event_sink events;
  for (const change& each : made) {
    const memprof::block_address address{each.address};
    if (each.action == memprof::segment_action::reserve)
      events.reserve(space_, address, static_cast<std::size_t>(each.bytes));
    else
      events.release(space_, address, static_cast<std::size_t>(each.bytes));
  }
}

}  // namespace memprof_python
