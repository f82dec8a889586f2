#include <memprof/config.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_blocks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

template <class Predicate>
std::size_t tt_blocks::find(Predicate&& is_wanted) const {
  const std::size_t oldest = live_.size() - std::min(live_.size(), max_tried);
  for (std::size_t index = live_.size(); index > oldest; --index) {
    if (is_wanted(live_[index - 1])) return index - 1;
  }
  return none;
}

void tt_blocks::remove(std::int64_t bytes, const std::vector<std::string>& tensors,
                       const std::function<void(const block& from, std::int64_t part)>& free) {
  for (const std::string& tensor : tensors) {
    const std::size_t index = find([&](const block& each) { return each.tensor == tensor; });
    if (index != none && bytes > 0) bytes -= take(index, bytes, free);
  }
  while (bytes > 0 && !live_.empty()) {
    const std::size_t equal = find([&](const block& each) { return each.bytes == bytes; });
    bytes -= take(equal == none ? live_.size() - 1 : equal, bytes, free);
  }
}

std::int64_t tt_blocks::take(std::size_t index, std::int64_t bytes,
                             const std::function<void(const block& from, std::int64_t part)>& free) {
  block& from = live_[index];
  const std::int64_t part = std::min(bytes, from.bytes);
  free(from, part);
  from.bytes -= part;
  from.address += static_cast<std::uint64_t>(part);
  if (from.bytes == 0) live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  return part;
}

void tt_splits::finish() {
  std::stable_sort(splits_.begin(), splits_.end(),
                   [](const tt_split& left, const tt_split& right) { return left.block < right.block; });
}

void tt_splits::for_each_part(std::uint64_t block, std::int64_t bytes, const std::function<void(std::int64_t bytes)>& part) {
  for (; next_ < splits_.size() && splits_[next_].block <= block; ++next_) {
    // The file may have changed since the first pass.
    if (splits_[next_].block != block || splits_[next_].bytes >= bytes) continue;
    part(splits_[next_].bytes);
    bytes -= splits_[next_].bytes;
  }
  part(bytes);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
