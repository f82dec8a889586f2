#include <memprof/detail/futex_lock.hpp>

#include <catch2/catch_test_macros.hpp>

#include <thread>
#include <vector>

namespace memprof_tests::detail_futex_lock {

TEST_CASE("futex lock: one thread at a time") {
  memprof::detail::futex_lock lock;
  long counter = 0;  // not atomic: the lock is what keeps the additions apart
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20'000; ++round) {
        const memprof::detail::lock_guard hold{lock};
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(counter == 80'000);
}

TEST_CASE("futex lock: it is free after a reset, whoever held it") {
  memprof::detail::futex_lock lock;
  lock.lock();
  lock.reset();
  lock.lock();
  lock.unlock();
  SUCCEED("it did not wait for ever");
}

}  // namespace memprof_tests::detail_futex_lock
