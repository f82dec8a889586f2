#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

/// @file
/// Programs whose threads allocate blocks, hand them over and free each other's, and whose true peak follows from how they
/// synchronise. They use addresses again at once, so that an event in a wrong order is also an impossible one.
///
/// A program is given a way to make a thread's sink: an object with `allocate(address, bytes)` and `deallocate(address, bytes)`.

namespace hand_over {

/// What a profile must say of a program.
struct truth {
  std::int64_t peak = 0;
  std::int64_t live = 0;
  std::int64_t allocated = 0;
  std::int64_t allocation_count = 0;

  bool operator==(const truth&) const = default;

  void allocate(std::int64_t bytes) {
    live += bytes;
    if (live > peak) peak = live;
    allocated += bytes;
    ++allocation_count;
  }
};

template <class Work>
void on_threads(unsigned count, Work work) {
  std::vector<std::thread> threads;
  for (unsigned index = 0; index < count; ++index) threads.emplace_back(work, index);
  for (std::thread& thread : threads) thread.join();
}

/// One block of 1,000 bytes: who has the turn frees the other's and allocates it again. The peak is 1,000, never 2,000.
template <class MakeSink>
truth alternation(unsigned threads, std::uint64_t turns, MakeSink make_sink) {
  constexpr std::uint64_t address = 0x1000;
  std::atomic<std::uint64_t> turn{0};
  on_threads(threads, [&](unsigned index) {
    auto sink = make_sink();
    for (std::uint64_t own = index; own < turns; own += threads) {
      while (turn.load(std::memory_order_acquire) != own) std::this_thread::yield();
      if (own != 0) sink.deallocate(address, 1000);
      sink.allocate(address, 1000);
      turn.store(own + 1, std::memory_order_release);
    }
  });
  const auto count = static_cast<std::int64_t>(turns);
  return {1000, 1000, 1000 * count, count};
}

/// A queue that has room for 8 blocks of 512 bytes: a producer allocates once a place is free, a consumer frees before it gives
/// the place back. It is full when the consumers start, so the peak is 4,096.
template <class MakeSink>
truth bounded_queue(unsigned pairs, std::uint64_t blocks_per_producer, MakeSink make_sink) {
  constexpr std::uint64_t places = 8;
  std::mutex mutex;
  std::deque<std::uint64_t> free_places;
  std::deque<std::uint64_t> filled;
  std::atomic<bool> may_consume{false};
  const std::uint64_t blocks = pairs * blocks_per_producer;
  for (std::uint64_t place = 0; place < places; ++place) free_places.push_back(place);

  const auto take = [&mutex](std::deque<std::uint64_t>& from, std::uint64_t& place) {
    const std::lock_guard lock{mutex};
    if (from.empty()) return false;
    place = from.front();
    from.pop_front();
    return true;
  };
  const auto give = [&mutex](std::deque<std::uint64_t>& to, std::uint64_t place) {
    const std::lock_guard lock{mutex};
    to.push_back(place);
    return to.size();
  };
  on_threads(2 * pairs, [&](unsigned index) {
    auto sink = make_sink();
    const bool produces = index < pairs;
    while (!produces && !may_consume.load()) std::this_thread::yield();
    for (std::uint64_t block = 0; block < blocks_per_producer; ++block) {
      std::uint64_t place = 0;
      while (!take(produces ? free_places : filled, place)) std::this_thread::yield();
      if (produces) {
        sink.allocate(0x2000 + 512 * place, 512);
        if (give(filled, place) == places) may_consume = true;
      } else {
        sink.deallocate(0x2000 + 512 * place, 512);
        give(free_places, place);
      }
    }
  });
  const auto count = static_cast<std::int64_t>(blocks);
  return {4096, 0, 512 * count, count};
}

/// Tokens of different sizes that go round a ring of threads; who gets one frees its block and allocates it anew. All are live
/// before the first goes, so the peak is the sum of their sizes.
template <class MakeSink>
truth token_ring(unsigned threads, unsigned tokens, std::uint64_t turns, MakeSink make_sink) {
  struct token {
    std::atomic<std::uint64_t> turn{0};
  };
  const auto size_of = [](unsigned index) { return std::uint64_t{100} * (index + 1); };
  const auto address_of = [](unsigned index) { return std::uint64_t{0x4000} + 0x1000 * index; };
  std::vector<token> ring(tokens);
  truth expected;
  {
    auto sink = make_sink();
    for (unsigned index = 0; index < tokens; ++index) {
      sink.allocate(address_of(index), size_of(index));
      expected.allocate(static_cast<std::int64_t>(size_of(index)));
    }
  }
  on_threads(threads, [&](unsigned index) {
    auto sink = make_sink();
    for (bool is_done = false; !is_done;) {
      is_done = true;
      for (unsigned each = 0; each < tokens; ++each) {
        const std::uint64_t turn = ring[each].turn.load(std::memory_order_acquire);
        if (turn >= turns) continue;
        is_done = false;
        if (turn % threads != index) continue;
        sink.deallocate(address_of(each), size_of(each));
        sink.allocate(address_of(each), size_of(each));
        ring[each].turn.store(turn + 1, std::memory_order_release);
      }
      if (!is_done) std::this_thread::yield();
    }
  });
  expected.allocated += static_cast<std::int64_t>(turns) * expected.live;
  expected.allocation_count += static_cast<std::int64_t>(turns * tokens);
  return expected;
}

/// Any thread allocates and frees any block, inside one critical section in which the truth is kept as well.
template <class MakeSink>
truth serialised_mix(unsigned threads, unsigned calls_per_thread, std::uint32_t seed, MakeSink make_sink) {
  struct block {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  std::mutex mutex;
  truth expected;
  std::vector<block> live;
  std::vector<std::uint64_t> free_addresses;
  for (std::uint64_t index = 0; index < 200; ++index) free_addresses.push_back(0x100000 + 0x10000 * index);

  on_threads(threads, [&](unsigned index) {
    auto sink = make_sink();
    std::mt19937 random{seed + index};
    for (unsigned call = 0; call < calls_per_thread; ++call) {
      const std::lock_guard lock{mutex};
      if (!free_addresses.empty() && (live.empty() || random() % 100 < 52)) {
        const block made{free_addresses.back(), 1 + random() % 60'000};
        free_addresses.pop_back();
        sink.allocate(made.address, made.bytes);
        live.push_back(made);
        expected.allocate(static_cast<std::int64_t>(made.bytes));
      } else {
        std::swap(live[random() % live.size()], live.back());
        sink.deallocate(live.back().address, live.back().bytes);
        free_addresses.push_back(live.back().address);
        expected.live -= static_cast<std::int64_t>(live.back().bytes);
        live.pop_back();
      }
    }
  });
  return expected;
}

}  // namespace hand_over
