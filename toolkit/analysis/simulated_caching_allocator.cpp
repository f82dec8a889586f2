#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/caching_allocator_stats.hpp>
#include <memprof/toolkit/analysis/device_blocks.hpp>
#include <memprof/toolkit/analysis/request_places.hpp>
#include <memprof/toolkit/analysis/simulated_caching_allocator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// As PyTorch writes sizes (`format_size` of c10/core/Allocator.h): 1,024 of a unit are not yet one of the next.
[[nodiscard]] std::string size_text(std::int64_t bytes) {
  struct unit {
    std::int64_t bytes;
    const char* name;
  };
  char text[48];
  for (const unit& each : {unit{std::int64_t{1} << 30, "GiB"}, unit{std::int64_t{1} << 20, "MiB"}, unit{1 << 10, "KiB"}}) {
    if (bytes <= each.bytes) continue;
    std::snprintf(text, sizeof text, "%.2f %s", static_cast<double>(bytes) / static_cast<double>(each.bytes), each.name);
    return text;
  }
  return std::to_string(bytes) + " bytes";
}

}  // namespace

void simulated_caching_allocator::restart(const caching_allocator_options& options) {
  auto model = std::make_unique<caching_allocator>(
      options, [this](segment_action action, std::uint64_t address, std::int64_t bytes) { add_change(action, address, bytes); });
  const std::lock_guard locked{lock_};
  blocks_.clear();
  changes_.clear();
  origins_.clear();
  places_ = {};
  handles_ = {{0, 0}};
  model_ = std::move(model);
}

void simulated_caching_allocator::add_change(segment_action action, std::uint64_t address, std::int64_t bytes) {
  place where = where_;
  if (action == segment_action::reserve) {
    origins_[address] = where;
  } else {
    // Pages may be given back in other ranges than they were taken in, but addresses are never of another stream or pool.
    const auto after = origins_.upper_bound(address);
    if (after != origins_.begin()) where = std::prev(after)->second;
    if (!model_->options().expandable_segments) origins_.erase(address);
  }
  changes_.push_back({action, address, bytes, where, was_asked_});
}

simulated_caching_allocator::statistics simulated_caching_allocator::stats() const {
  const std::lock_guard locked{lock_};
  return {model_->stats(), model_->stats_of_pools(false), model_->stats_of_pools(true)};
}

void simulated_caching_allocator::reset_peak_stats() {
  const std::lock_guard locked{lock_};
  model_->reset_peak_stats();
}

void simulated_caching_allocator::reset_accumulated_stats() {
  const std::lock_guard locked{lock_};
  model_->reset_accumulated_stats();
}

void simulated_caching_allocator::set_memory_fraction(double fraction) {
  const std::lock_guard locked{lock_};
  model_->set_memory_fraction(fraction);
}

double simulated_caching_allocator::memory_fraction() const {
  const std::lock_guard locked{lock_};
  return model_->options().per_process_memory_fraction;
}

template <class Release>
void simulated_caching_allocator::release_as_asked(Release release) {
  std::vector<change> made;
  {
    const std::lock_guard locked{lock_};
    was_asked_ = true;
    release();
    was_asked_ = false;
    made.swap(changes_);
  }
  report(made);
}

void simulated_caching_allocator::empty_cache() {
  release_as_asked([this] {
    if (!places_.is_any_used()) model_->empty_cache();
    places_.empty_unused(*model_);
  });
}

void simulated_caching_allocator::empty_pool(pool_handle pool) {
  release_as_asked([&] { places_.empty_unused(*model_, pool); });
}

void simulated_caching_allocator::use_stream(std::uint64_t stream) {
  const std::lock_guard locked{lock_};
  places_.use_stream(stream);
}

std::uint64_t simulated_caching_allocator::stream() const {
  const std::lock_guard locked{lock_};
  return places_.stream();
}

bool simulated_caching_allocator::try_to_wait() {
  const std::lock_guard locked{lock_};
  if (!places_.is_any_used()) return true;
  const std::uint64_t capture = places_.capture_of(places_.stream());
  places_.fail(capture);
  return capture == 0;
}

void simulated_caching_allocator::add_work() {
  const std::lock_guard locked{lock_};
  if (places_.is_any_used()) places_.add_work(places_.stream());
}

simulated_caching_allocator::held_block simulated_caching_allocator::request(std::int64_t bytes, bool is_backward) {
  where_ = places_.here(is_backward);
  if (handles_.size() <= where_.pool) handles_.resize(where_.pool + 1);
  handles_[where_.pool] = where_.handle;
  model_->keep_shared_pool(places_.is_any_used());
  return {model_->allocate(static_cast<std::uint64_t>(bytes), where_.stream, where_.pool), where_};
}

bool simulated_caching_allocator::has_room(std::int64_t bytes, char* message, std::size_t room, std::int64_t& free_bytes,
                                           bool is_backward) noexcept {
  std::vector<change> made;
  bool is_there = true;
  try {
    const std::lock_guard locked{lock_};
    if (model_->options().capacity == 0) return true;
    // The request that follows gets what this one has left in the cache.
    const cached_block* const block = request(bytes, is_backward).block;
    is_there = block != nullptr;
    if (is_there) {
      model_->withdraw(block);
    } else {
      free_bytes = free_on_device();
      std::snprintf(message, room, "%s", refusal(bytes).c_str());
    }
    made.swap(changes_);
  } catch (const std::bad_alloc&) {  // of the model's own memory
  }
  report(made);
  return is_there;
}

std::int64_t simulated_caching_allocator::free_on_device() const {
  return std::max<std::int64_t>(model_->options().available() - model_->stats().reserved_bytes.current, 0);
}

/// The text of PyTorch 2.13 (`malloc` in c10/cuda/CUDACachingAllocator.cpp), with what it names as requested: the segment.
std::string simulated_caching_allocator::refusal(std::int64_t bytes) const {
  const caching_allocator_options& options = model_->options();
  const std::int64_t allocated = model_->stats().allocated_bytes.current;
  const std::int64_t free = free_on_device();
  const std::string allowed = options.has_fraction() ? size_text(options.allowed()) + " allowed; " : "";
  return "CUDA out of memory. Tried to allocate " + size_text(detail::segment_size(options, detail::block_size(options, bytes))) +
         ". GPU 0 has a total capacity of " + size_text(options.capacity) + " of which " + size_text(free) +
         " is free. Including non-PyTorch memory, this process has " + size_text(options.capacity - free) + " memory in use. " +
         allowed + "Of the allocated memory " + size_text(allocated) + " is allocated by PyTorch, and " +
         size_text(model_->stats().reserved_bytes.current - allocated) +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
         "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
         "(https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)";
}

simulated_caching_allocator::place simulated_caching_allocator::allocate(const void* address, std::int64_t bytes,
                                                                         bool is_backward) noexcept {
  std::vector<change> made;
  held_block given{};
  try {
    const std::lock_guard locked{lock_};
    given = request(bytes, is_backward);
    if (given.block != nullptr) blocks_[address] = given;
    made.swap(changes_);
  } catch (const std::bad_alloc&) {  // the program goes on; the statistics lack the block
  }
  report(made);
  return given.block == nullptr ? place{} : given.where;
}

simulated_caching_allocator::place simulated_caching_allocator::deallocate(const void* address) noexcept {
  const std::lock_guard locked{lock_};
  const auto known = blocks_.find(address);
  if (known == blocks_.end()) return {};
  const place where = known->second.where;
  try {
    model_->deallocate(known->second.block);
  } catch (const std::bad_alloc&) {  // the block stays in use
  }
  blocks_.erase(known);
  return where;
}

void simulated_caching_allocator::report(const std::vector<change>& made) const {
  if (!observer_) return;
  for (const change& each : made) observer_(each.action, each.address, each.bytes, each.where, each.was_asked);
}

}  // namespace memprof::inline MEMPROF_ABI
