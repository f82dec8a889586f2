#include <memprof/config.hpp>
#include <memprof/ledger/ledger.hpp>
#include <memprof/ledger/live_blocks.hpp>
#include <memprof/toolkit/format/thread_numbers.hpp>
#include <memprof/toolkit/page/block_visitor.hpp>
#include <memprof/toolkit/page/invocation_visitor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace memprof::inline MEMPROF_ABI::detail {

void invocation_visitor::change(const ledger& events, std::uint32_t ring, std::size_t space, std::int64_t bytes) {
  const thread_scopes* const thread = events.thread(ring);
  if (thread != nullptr && events.open_operations().works_for(*thread).scopes.is_joined())
    return change_shared(events, *thread, ring, space, bytes);
  if (ring_thread* const on = thread_of_ring(ring)) on->net_of(space) += bytes;
}

void invocation_visitor::change_shared(const ledger& events, const thread_scopes& on, std::uint32_t ring, std::size_t space,
                                       std::int64_t bytes) {
  // The innermost adoption has a row of its own, on the worker's thread.
  for (std::size_t depth = on.scopes.depth(); depth != 0; --depth) {
    if (!on.scopes[depth - 1].is_adopted) continue;
    if (ring_thread* const worker = thread_of_ring(ring)) add_shared(*worker, depth, space, bytes);
    break;
  }
  events.open_operations().for_each_enclosing(on, [&](const thread_scopes& around, std::size_t depth, bool) {
    const std::uint32_t found = &around == &on ? ring : numbers_.ring_of(around.thread);
    if (found == thread_numbers::no_ring) return;
    if (ring_thread* const leader = thread_of_ring(found)) add_shared(*leader, depth, space, bytes);
  });
}

void invocation_visitor::add_shared(ring_thread& on, std::size_t depth, std::size_t space, std::int64_t bytes) const {
  if (depth > on.open.size() || space >= deltas_.size()) return;
  std::vector<std::int64_t>& shared = on.open[depth - 1].shared;
  shared.resize(deltas_.size());
  shared[space] += bytes;
}

invocation_visitor::ring_thread* invocation_visitor::thread_of_ring(std::uint32_t ring) {
  if (ring < rings_.size() && rings_[ring] != nullptr) return rings_[ring].get();
  if (ring > block::max_thread) return nullptr;
  if (ring >= rings_.size()) rings_.resize(ring + std::size_t{1});
  rings_[ring] = std::make_unique<ring_thread>();
  rings_[ring]->number = ring;
  numbers_.add(ring, ring);
  return rings_[ring].get();
}

std::size_t invocation_visitor::index_of(std::uint64_t number, const page_thread& thread) {
  const auto [known, is_new] = indices_.try_emplace(number, threads_.size());
  if (!is_new) return known->second;
  if (threads_.size() == max_threads) {
    indices_.erase(known);
    return max_threads - 1;
  }
  threads_.push_back(threads_.size() + 1 == max_threads ? page_thread{} : thread);
  return known->second;
}

invocation invocation_visitor::at(const ring_thread& on, std::size_t depth) {
  const open_invocation& open = on.open[depth];
  std::fill(deltas_.begin(), deltas_.end(), 0);
  for (std::size_t position = 0; position < on.spaces.size(); ++position) {
    deltas_[on.spaces[position]] = on.nets[position] - (position < open.nets.size() ? open.nets[position] : 0);
  }
  for (std::size_t space = 0; space < open.shared.size(); ++space) deltas_[space] += open.shared[space];
  return {static_cast<std::uint32_t>(on.index), static_cast<std::uint32_t>(depth), open.operation, open.begin, deltas_.data()};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
