#include "clock.hpp"

#include <memprof/toolkit/analysis/caching_allocator.hpp>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t replayed_events = 500'000;
constexpr std::uint64_t megabyte = std::uint64_t{1} << 20;

/// A request for `bytes`, or, if that is 0, the end of the block.
struct step {
  std::uint64_t bytes;
  std::size_t block;
};

/// Steps and the numbers of the blocks that are alive.
class recording {
 public:
  std::size_t allocate(std::uint64_t bytes) {
    if (vacant_.empty()) vacant_.push_back(block_count_++);
    const std::size_t block = vacant_.back();
    vacant_.pop_back();
    steps_.push_back({bytes, block});
    return block;
  }
  void free(std::size_t block) {
    steps_.push_back({0, block});
    vacant_.push_back(block);
  }
  [[nodiscard]] const std::vector<step>& steps() const { return steps_; }
  [[nodiscard]] std::size_t block_count() const { return block_count_; }

 private:
  std::vector<step> steps_;
  std::vector<std::size_t> vacant_;
  std::size_t block_count_ = 0;
};

/// Training: each step keeps the activations of 24 layers, each along with a temporary block, and frees them in reverse order,
/// each along with a gradient of its size.
recording record_training() {
  constexpr int layers = 24;
  const std::vector<std::uint64_t> activations{24 * megabyte, 72 * megabyte, 4096,          24 * megabyte, 24 * megabyte,
                                               4096,          96 * megabyte, 96 * megabyte, 24 * megabyte, 32768};
  recording result;
  std::vector<std::pair<std::size_t, std::uint64_t>> kept;
  while (result.steps().size() < replayed_events) {
    for (int layer = 0; layer < layers; ++layer) {
      for (const std::uint64_t bytes : activations) {
        const std::size_t temporary = result.allocate(bytes / 2);
        kept.emplace_back(result.allocate(bytes), bytes);
        result.free(temporary);
      }
    }
    std::size_t gradient = result.allocate(kept.back().second);
    for (; !kept.empty(); kept.pop_back()) {
      const std::size_t next = result.allocate(kept.back().second);
      result.free(kept.back().first);
      result.free(std::exchange(gradient, next));
    }
    result.free(gradient);
  }
  return result;
}

/// 5,000 live blocks of 512 bytes to 64 MB, freed in random order.
recording record_at_random() {
  std::mt19937_64 random{1};
  std::uniform_real_distribution<double> doublings{9, 26};
  recording result;
  std::vector<std::size_t> live;
  while (result.steps().size() < replayed_events) {
    if (live.size() == 5'000) {
      std::swap(live[random() % live.size()], live.back());
      result.free(live.back());
      live.pop_back();
    }
    live.push_back(result.allocate(static_cast<std::uint64_t>(std::exp2(doublings(random)))));
  }
  return result;
}

void replay(benchmark::State& state, const recording& recorded, const memprof::caching_allocator_options& options) {
  std::vector<const memprof::cached_block*> blocks(recorded.block_count());
  for (auto iteration : state) {
    memprof::caching_allocator allocator{options};
    const double begin = thread_seconds();
    for (const step& step : recorded.steps()) {
      if (step.bytes == 0) {
        allocator.deallocate(blocks[step.block]);
      } else {
        blocks[step.block] = allocator.allocate(step.bytes);
      }
    }
    state.SetIterationTime(thread_seconds() - begin);
    if (allocator.stats().num_ooms != 0) state.SkipWithError("a device without a limit was full");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * recorded.steps().size()));
}

memprof::caching_allocator_options expandable() {
  memprof::caching_allocator_options options;
  options.expandable_segments = true;
  return options;
}

void replay_training(benchmark::State& state, const memprof::caching_allocator_options& options) {
  static const recording recorded = record_training();
  replay(state, recorded, options);
}

void replay_at_random(benchmark::State& state) {
  static const recording recorded = record_at_random();
  replay(state, recorded, {});
}

BENCHMARK_CAPTURE(replay_training, training, memprof::caching_allocator_options{})
    ->Name("caching_allocator/training")
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay_training, expandable, expandable())
    ->Name("caching_allocator/expandable")
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(replay_at_random)->Name("caching_allocator/random")->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
