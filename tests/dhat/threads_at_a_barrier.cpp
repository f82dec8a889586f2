// Threads that churn, hand blocks to each other, and hold what they have at a barrier, where the peak is.
#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <barrier>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t thread_count = 4;

void work() {
  std::vector<std::vector<std::unique_ptr<char[]>>> handed(thread_count);
  std::barrier everyone{static_cast<std::ptrdiff_t>(thread_count) + 1};
  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < thread_count; ++index) {
    threads.emplace_back([&, index] {
      std::vector<std::unique_ptr<char[]>> own;
      for (std::size_t count = 0; count < 2'000; ++count) {
        own.push_back(std::make_unique<char[]>(16 + count % 100 * (index + 1)));
        if (count % 3 != 0) own.erase(own.begin() + static_cast<std::ptrdiff_t>(own.size() / 2));
      }
      handed[(index + 1) % thread_count] = std::move(own);
      everyone.arrive_and_wait();  // all blocks are live; the main thread adds the greatest
      everyone.arrive_and_wait();
      handed[index].clear();  // made by another thread
    });
  }
  everyone.arrive_and_wait();
  {
    const auto greatest = std::make_unique<char[]>(2'000'000);
    everyone.arrive_and_wait();
    for (std::thread& thread : threads) thread.join();
  }
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture({.ring_capacity = 32});
  work();
  capture.end();
  std::printf("peak %lld\n", static_cast<long long>(capture.profile().space("cpu").cumulative_peak));
}
