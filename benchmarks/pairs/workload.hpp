#pragma once

#include "channel.hpp"
#include "options.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <new>
#include <thread>
#include <vector>

/// @file
/// The program whose variants are compared: threads that do nothing but allocate and free. Every variant compiles this file
/// and differs only in the implementation of `operator new` and in what `Operations::open` returns.

namespace pairs {

/// What a part of the program took, in nanoseconds.
struct cost {
  double cpu = 0;  ///< of all threads
  double wall = 0;
  double waited = 0;  ///< of all threads together, for blocks of another thread
};

/// Measures from its construction on.
class stopwatch {
 public:
  [[nodiscard]] cost read(double waited) const {
    return {nanoseconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_, nanoseconds_of(CLOCK_MONOTONIC) - wall_, waited};
  }

 private:
  double cpu_ = nanoseconds_of(CLOCK_PROCESS_CPUTIME_ID);
  double wall_ = nanoseconds_of(CLOCK_MONOTONIC);
};

/// A xorshift generator: a few instructions, the same sequence everywhere.
class random_bits {
 public:
  explicit random_bits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

/// 16 B to 12 KiB: 60 % below 128 B, 30 % below 512 B, 9 % below 2 KiB, 1 % from 4 KiB on.
[[nodiscard]] inline std::size_t block_size(std::uint64_t bits) {
  const std::uint64_t share = (bits >> 48) % 100;
  const std::uint64_t position = bits >> 20;
  if (share < 60) return 16 + (position & 127) * 7 / 8;
  if (share < 90) return 128 + (position & 511) * 3 / 4;
  if (share < 99) return 512 + (position & 2047) * 3 / 4;
  return 4096 + (position & 8191);
}

/// Three in four blocks go to 16 slots and so live briefly; the others go anywhere in the `live` slots.
[[nodiscard]] inline std::size_t place_of(std::uint64_t bits, std::uint64_t live) {
  return (bits & 7) < 6 ? (bits >> 8) & 15 & (live - 1) : (bits >> 8) & (live - 1);
}

/// Frees a block on the thread that allocated it.
struct free_here {
  void release(void* block) { ::operator delete(block); }
  void finish() {}
};

/// Gives blocks to the next thread and frees those that the previous one gives.
class free_elsewhere {
 public:
  free_elsewhere(channel& outgoing, channel& incoming) : outgoing_(outgoing), incoming_(incoming) {}

  void release(void* block) {
    sent_.blocks[sent_.count++] = block;
    if (sent_.count == sent_.blocks.size()) send();
  }

  void finish() {
    send();
    outgoing_.close();
    while (incoming_.pop(received_)) free_received();
  }

 private:
  void send() {
    while (!outgoing_.try_push(sent_)) {
      // Waits only if there is nothing to free, so that a ring of threads that all wait cannot arise.
      if (incoming_.try_pop(received_)) {
        free_received();
      } else {
        outgoing_.wait_for_room();
      }
    }
    sent_.count = 0;
    while (incoming_.try_pop(received_)) free_received();
  }

  void free_received() {
    for (std::size_t index = 0; index < received_.count; ++index) ::operator delete(received_.blocks[index]);
  }

  channel& outgoing_;
  channel& incoming_;
  channel::batch sent_;
  channel::batch received_;
};

/// The number of pairs before another operation is opened: owners change, but scopes cost little compared with the pairs.
inline constexpr std::uint64_t pairs_per_operation = 128;

template <class Operations, class Release>
[[gnu::noinline]] void work(std::uint64_t thread, const options& options, Release release) {
  auto** const places = static_cast<void**>(std::calloc(options.live, sizeof(void*)));  // not `operator new`: not an event
  random_bits random{88172645463325252ULL * (2 * thread + 1)};
  for (std::uint64_t done = 0; done < options.pairs;) {
    const std::uint64_t end = done + pairs_per_operation < options.pairs ? done + pairs_per_operation : options.pairs;
    [[maybe_unused]] auto operation = Operations::open(done / pairs_per_operation);
    for (; done < end; ++done) {
      const std::uint64_t bits = random.next();
      void*& place = places[place_of(bits, options.live)];
      if (place != nullptr) release.release(place);
      place = ::operator new(block_size(bits));
      *static_cast<volatile char*>(place) = 1;
    }
  }
  for (std::uint64_t index = 0; index < options.live; ++index) {
    if (places[index] != nullptr) release.release(places[index]);
  }
  release.finish();
  std::free(places);
}

/// Runs the whole program. Returns how long its threads waited for each other's blocks, in nanoseconds.
template <class Operations>
double run(const options& options) {
  if (options.threads == 1) {
    work<Operations>(0, options, free_here{});
    return 0;
  }
  std::deque<channel> channels(options.hand_over ? options.threads : 0);
  std::vector<std::thread> threads;
  threads.reserve(options.threads);
  for (std::uint64_t thread = 0; thread < options.threads; ++thread) {
    if (options.hand_over) {
      threads.emplace_back([&, thread] {
        work<Operations>(thread, options, free_elsewhere{channels[thread], channels[(thread + 1) % options.threads]});
      });
    } else {
      threads.emplace_back([&, thread] { work<Operations>(thread, options, free_here{}); });
    }
  }
  for (std::thread& thread : threads) thread.join();
  double waited = 0;
  for (const channel& each : channels) waited += each.waited_ns();
  return waited;
}

/// Allocations and frees of a run.
[[nodiscard]] inline std::uint64_t events(const options& options) { return 2 * options.pairs * options.threads; }

}  // namespace pairs
