// What heaptrack records for check_heaptrack.py, which knows what `keep`, `grow` and `churn` do.
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

void* kept[50];

[[gnu::noinline]] void* keep(std::size_t bytes) { return std::malloc(bytes); }

/// 1 MiB after 50 KiB, which are freed.
[[gnu::noinline]] void* grow() { return std::realloc(std::malloc(50 << 10), 1 << 20); }

/// 1,000 blocks of 500 bytes, one at a time.
[[gnu::noinline]] void churn() {
  for (int round = 0; round < 1000; ++round) {
    const std::unique_ptr<char[]> block{new char[500]};
    block[0] = static_cast<char>(round);
  }
}

}  // namespace

int main() {
  for (void*& block : kept) block = keep(1000);
  std::free(grow());
  churn();
  std::this_thread::sleep_for(std::chrono::milliseconds{30});  // some of heaptrack's time stamps
  std::thread{[] {
    std::vector<std::string> texts;
    for (int round = 0; round < 100; ++round) texts.emplace_back(100, 'x');
  }}.join();
  for (int number = 0; number < 10; ++number) std::free(kept[number]);
}
