#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/caching_allocator.hpp>
#include <memprof/toolkit/analysis/waterfall/operation_part.hpp>
#include <memprof/toolkit/analysis/what_if/scenario.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// The lives in the order of their ends; those that never end are not among them.
std::vector<std::uint32_t> by_end(const std::vector<lifetime>& lifetimes) {
  std::vector<std::uint32_t> order;
  order.reserve(lifetimes.size());
  for (std::uint32_t index = 0; index < lifetimes.size(); ++index) {
    if (lifetimes[index].end != never) order.push_back(index);
  }
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t left, std::uint32_t right) { return lifetimes[left].end < lifetimes[right].end; });
  return order;
}

/// Calls `begin(index)` and `end(index)` for each life, in the order of time.
template <class Begin, class End>
void sweep(const std::vector<lifetime>& lifetimes, Begin&& begin, End&& end) {
  const std::vector<std::uint32_t> ending = by_end(lifetimes);
  std::size_t ended = 0;
  for (std::uint32_t index = 0; index < lifetimes.size(); ++index) {
    for (; ended < ending.size() && lifetimes[ending[ended]].end <= lifetimes[index].begin; ++ended) end(ending[ended]);
    begin(index);
  }
}

/// The names in a path as it is written: a name of the program may hold slashes.
std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t slash = path.find('/');
    names.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return names;
    path.remove_prefix(slash + 1);
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string path;
  for (const std::string& name : names) path += (path.empty() ? "" : "/") + name;
  return path;
}

}  // namespace

scenario::scenario(const block_history& run) {
  bytes.reserve(run.blocks.size());
  ends.reserve(run.blocks.size());
  for (const history_block& block : run.blocks) {
    bytes.push_back(block.bytes);
    ends.push_back(block.end == never_freed ? never : at_event(block.end));
  }
  is_changed.resize(run.blocks.size());
  has_moved.resize(run.blocks.size());
}

std::vector<lifetime> scenario::lifetimes(const block_history& run) const {
  std::vector<lifetime> lives;
  lives.reserve(run.blocks.size() + further.size());
  for (std::uint32_t block = 0; block < run.blocks.size(); ++block) {
    if (ends[block] != 0) lives.push_back({at_event(run.blocks[block].begin), ends[block], block});
  }
  const auto is_earlier = [](const lifetime& left, const lifetime& right) { return left.begin < right.begin; };
  const auto middle = static_cast<std::ptrdiff_t>(lives.size());
  lives.insert(lives.end(), further.begin(), further.end());
  std::sort(lives.begin() + middle, lives.end(), is_earlier);
  std::inplace_merge(lives.begin(), lives.begin() + middle, lives.end(), is_earlier);
  return lives;
}

found_peak peak_of(const scenario& of, const std::vector<lifetime>& lifetimes) {
  found_peak highest;
  std::int64_t live = 0;
  sweep(
      lifetimes,
      [&](std::uint32_t index) {
        live += of.bytes[lifetimes[index].block];
        if (live > highest.bytes) highest = {live, lifetimes[index].begin, lifetimes[index].block};
      },
      [&](std::uint32_t index) { live -= of.bytes[lifetimes[index].block]; });
  return highest;
}

std::vector<bool> operations_of(const block_history& run, std::string_view owner) {
  std::vector<bool> found(run.operations.size());
  if (owner == outside_every_operation) {
    found[0] = true;
    return found;
  }
  const auto find = [&](const std::string& pattern, bool as_shown) {
    bool is_there = false;
    for (std::uint32_t operation = 1; operation < run.operations.size(); ++operation) {
      const std::string path = joined(run.path(operation));
      const std::vector<std::string> names = split_path(as_shown ? on_one_line(path) : path);
      found[operation] = found[run.operations[operation].parent] || matches_path(pattern, names);
      is_there = is_there || found[operation];
    }
    return is_there;
  };
  const std::string pattern = std::string{owner} + "/**";
  if (!find(pattern, false) && !find(without_escapes(pattern), false) && !find(pattern, true))
    raise("no operation '" + std::string{owner} + "' in this run");
  return found;
}

std::vector<std::string> owner_labels(const block_history& run) {
  std::vector<std::string> names;
  std::map<std::string, std::set<std::string>> layers;
  for (std::uint32_t operation = 0; operation < run.operations.size(); ++operation) {
    names.push_back(place_of(run.path(operation), category::other).operation);
    layers[with_folded_layers(names.back())].insert(names.back());
  }
  for (std::string& name : names) {
    const auto found = layers.find(with_folded_layers(name));
    if (found->second.size() > 1) name = found->first;
  }
  return names;
}

std::int64_t reserved_by(const scenario& of, const std::vector<lifetime>& lifetimes) {
  caching_allocator allocator;
  std::vector<const cached_block*> blocks(lifetimes.size());
  const auto size_of = [&](std::uint32_t index) { return of.bytes[lifetimes[index].block]; };
  sweep(
      lifetimes,
      [&](std::uint32_t index) {  // blocks of 0 bytes do not reach the allocator
        if (size_of(index) != 0) blocks[index] = allocator.allocate(static_cast<std::uint64_t>(size_of(index)));
      },
      [&](std::uint32_t index) {
        if (blocks[index] != nullptr) allocator.deallocate(blocks[index]);
      });
  return allocator.stats().reserved_bytes.peak;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
