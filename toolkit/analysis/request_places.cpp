#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/cached_block.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/request_places.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <thread>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// What a thread has said, and to which object: another one, or one that takes its place later, has not heard it.
struct used_stream {
  std::uint64_t run = 0;
  std::uint64_t stream = 0;
};

thread_local used_stream used_here;

[[nodiscard]] bool has_segments(const caching_allocator& model, caching_allocator::pool_id pool) {
  bool found = false;
  model.for_each_block([&](const cached_block& block) { found = found || (block.is_mapped && block.pool->id() == pool); });
  return found;
}

}  // namespace

std::uint64_t request_places::next_run() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::uint64_t request_places::stream() const noexcept { return used_here.run == run_ ? used_here.stream : 0; }

void request_places::use_stream(std::uint64_t stream) noexcept { used_here = {run_, stream}; }

request_places::captured_stream* request_places::use::find(std::uint64_t stream) {
  const auto found =
      std::find_if(streams.begin(), streams.end(), [&](const captured_stream& each) { return each.stream == stream; });
  return found == streams.end() ? nullptr : &*found;
}

bool request_places::use::has(std::uint64_t stream) const {
  return std::any_of(streams.begin(), streams.end(), [&](const captured_stream& each) { return each.stream == stream; });
}

request_places::place request_places::here(bool is_backward) const {
  place found{stream(), 0, {}};
  for (auto each = uses_.rbegin(); each != uses_.rend(); ++each) {
    const bool is_of_thread = each->capture == 0 && !is_backward && each->thread == std::this_thread::get_id();
    if (!is_of_thread && !each->has(found.stream)) continue;
    found.pool = pools_.at(each->pool).id;
    found.handle = each->pool;
    break;
  }
  return found;
}

bool request_places::retain(caching_allocator& model, pool_handle pool, bool whole) {
  const auto known = pools_.find(pool);
  if (known == pools_.end()) {
    pools_[pool] = {model.make_pool(whole), 1};
    return true;
  }
  if (known->second.users == 0) return false;
  ++known->second.users;
  return true;
}

int request_places::release(caching_allocator& model, pool_handle pool) {
  const auto known = pools_.find(pool);
  if (known == pools_.end() || known->second.users == 0) return -1;
  if (--known->second.users == 0) model.release_pool(known->second.id);
  return known->second.users;
}

int request_places::users(pool_handle pool) const {
  const auto known = pools_.find(pool);
  return known == pools_.end() ? 0 : known->second.users;
}

bool request_places::is_used(pool_handle pool) const {
  return std::any_of(uses_.begin(), uses_.end(), [&](const use& each) { return each.pool == pool; });
}

void request_places::begin_use(pool_handle pool) { uses_.push_back({pool, std::this_thread::get_id(), 0, {}}); }

std::uint64_t request_places::begin_capture(pool_handle pool, std::uint64_t stream) {
  uses_.push_back({pool, {}, ++captures_, {{stream, {}}}});
  return captures_;
}

bool request_places::end_use(pool_handle pool) {
  const auto found = std::find_if(uses_.begin(), uses_.end(), [&](const use& each) { return each.pool == pool; });
  if (found == uses_.end()) return false;
  uses_.erase(found);
  return true;
}

std::uint64_t request_places::capture_of(std::uint64_t stream) const {
  const auto found = std::find_if(uses_.begin(), uses_.end(), [&](const use& each) { return each.has(stream); });
  return found == uses_.end() ? 0 : found->capture;
}

void request_places::add_work(std::uint64_t stream) {
  for (use& each : uses_) {
    if (captured_stream* const captured = each.find(stream)) ++captured->done[stream];
  }
}

std::uint64_t request_places::mark(std::uint64_t stream) {
  for (use& each : uses_) {
    const captured_stream* const captured = each.find(stream);
    if (captured == nullptr) continue;
    each.marks.push_back(captured->done);
    return each.marks.size();
  }
  return 0;
}

void request_places::join(std::uint64_t stream, std::uint64_t capture, std::uint64_t mark) {
  for (use& each : uses_) {
    if (capture == 0 || each.capture != capture || each.streams.empty() || mark == 0 || mark > each.marks.size()) continue;
    if (!each.has(stream)) each.streams.push_back({stream, {}});
    done_work& done = each.find(stream)->done;
    for (const auto& [other, work] : each.marks[mark - 1]) done[other] = std::max(done[other], work);
  }
}

bool request_places::is_joined(std::uint64_t capture) const {
  for (const use& each : uses_) {
    if (capture == 0 || each.capture != capture || each.streams.empty()) continue;
    const done_work& seen = each.streams.front().done;
    for (const captured_stream& other : each.streams) {
      for (const auto& [stream, work] : other.done) {
        const auto known = seen.find(stream);
        if (work > (known == seen.end() ? 0 : known->second)) return false;
      }
    }
  }
  return true;
}

void request_places::fail(std::uint64_t capture) {
  for (use& each : uses_) {
    if (capture != 0 && each.capture == capture) each.streams.clear();
  }
}

void request_places::fail_all() {
  for (use& each : uses_) each.streams.clear();
}

bool request_places::has_failed(std::uint64_t capture) const {
  return std::any_of(uses_.begin(), uses_.end(),
                     [&](const use& each) { return capture != 0 && each.capture == capture && each.streams.empty(); });
}

bool request_places::are_captured() const {
  return std::any_of(uses_.begin(), uses_.end(), [](const use& each) { return !each.streams.empty(); });
}

void request_places::empty_unused(caching_allocator& model, pool_handle only) {
  for (auto each = pools_.begin(); each != pools_.end();) {
    const auto& [handle, pool] = *each;
    const bool is_meant = pool.users == 0 && (only == pool_handle{} || handle == only);
    if (is_meant) model.empty_pool(pool.id);
    each = is_meant && !has_segments(model, pool.id) ? pools_.erase(each) : std::next(each);
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
