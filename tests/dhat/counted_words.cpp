// Words in a table that rehashes, strings short and long, over-aligned blocks, arrays with a cookie, and blocks that nobody
// frees.
#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <cstdio>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct alignas(128) wide {
  char bytes[384] = {};
};
struct counted {
  ~counted() { ++destroyed; }
  static inline int destroyed = 0;
  int value = 0;
};

void work() {
  std::unordered_map<std::string, std::vector<std::size_t>> places;
  std::deque<std::string> order;
  for (std::size_t count = 0; count < 6'000; ++count) {
    std::string word = "w" + std::to_string(count * 7919 % 1'500);
    if (count % 5 == 0) word += " with a long tail that no small buffer holds";
    places[word].push_back(count);
    order.push_back(word);
    if (order.size() > 800) order.pop_front();
  }
  {
    const std::vector<wide> aligned(50);
    auto* const counters = new counted[1'000];
    const std::unordered_map<std::string, std::vector<std::size_t>> copy = places;
    delete[] counters;
  }
  auto* const kept = new std::string(10'000, 'k');
  kept->front() = 'K';
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture();
  {
    auto scope = memprof::track_operation("counting words");
    work();
    memprof::snapshot("WORDS");
  }
  capture.end();
  std::printf("peak %lld\n", static_cast<long long>(capture.profile().space("cpu").cumulative_peak));
}
