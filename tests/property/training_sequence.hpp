#pragma once

#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <property/random_sequence.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace memprof::property {

using namespace extend;

/// A training in which some operations keep what they allocate: in all steps or in some, from the begin or later, until the end
/// or not, for good or until all of it is freed at once. Now and then nothing happens for many steps, or another name ends
/// segments.
class training_sequence {
 public:
  explicit training_sequence(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] sequence make() {
    made_.personality = "training";
    made_.is_complete = random_.chance(50);
    made_.options.full_segments = 4;
    const std::uint64_t steps = random_.chance(20) ? 200 + random_.below(400) : 4 + random_.below(120);
    const std::uint64_t names = 1 + random_.below(3);
    std::vector<keeper> keepers(1 + random_.below(4));
    for (std::size_t index = 0; index < keepers.size(); ++index) {
      keepers[index] = {static_cast<label>(index),
                        static_cast<std::uint8_t>(random_.below(2)),
                        1 + random_.below(random_.chance(30) ? 12 : 1),
                        random_.chance(40) ? random_.below(steps) : 0,
                        random_.chance(30) ? random_.below(steps) : steps,
                        random_.chance(30) ? 1 + random_.below(40) : 0,
                        {}};
    }
    const std::uint64_t idle_begin = random_.chance(40) ? random_.below(steps) : steps;
    const std::uint64_t idle_end = idle_begin + random_.below(steps);
    if (random_.chance(30)) end_segments(11, 1 + random_.below(20));
    for (std::uint64_t step = 0; step < steps; ++step) {
      const bool is_idle = step >= idle_begin && step < idle_end;
      for (keeper& each : keepers) {
        if (!is_idle) run(each, step);
      }
      if (!is_idle && random_.chance(5)) reserve();
      for (label name = 8; name < 8 + names; ++name) end_segments(name, 1);
      if (random_.chance(5)) end_segments(11, 1);
    }
    return std::move(made_);
  }

 private:
  /// An operation that keeps blocks every so many steps, from one step until another.
  struct keeper {
    label name;  ///< 0: outside every operation
    std::uint8_t space;
    std::uint64_t interval;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t emptied_every;  ///< steps; 0: never
    std::vector<std::uint64_t> kept;
  };

  void run(keeper& each, std::uint64_t step) {
    if (each.name != 0) put({stamp_, detail::scope_address(1, 0), 0, each.name, event_kind::scope_begin, 0, 0});
    const std::uint64_t passing = allocate(each.space);
    if (step >= each.begin && step < each.end && step % each.interval == 0) each.kept.push_back(allocate(each.space));
    free(passing, each.space);
    if (each.emptied_every != 0 && step % each.emptied_every == each.emptied_every - 1) {
      for (const std::uint64_t address : each.kept) free(address, each.space);
      each.kept.clear();
    }
    if (each.name != 0) put({stamp_, detail::scope_address(1, 0), 0, each.name, event_kind::scope_end, 0, 0});
  }
  [[nodiscard]] std::uint64_t allocate(std::uint8_t space) {
    put({stamp_, address_ += 0x1000, 1 + random_.below(2'000), 0, event_kind::allocate, space, 0});
    return address_;
  }
  void free(std::uint64_t address, std::uint8_t space) { put({stamp_, address, 0, 0, event_kind::deallocate, space, 0}); }
  void reserve() {
    put({stamp_, reserved_, 4'000'000, 0, event_kind::reserve, 0, 0});
    reserved_ += 5'000'000;
  }
  void end_segments(label name, std::uint64_t count) {
    for (; count != 0; --count) {
      ++stamp_;
      made_.steps.push_back({true, 0, {stamp_, 0, 0, name, event_kind::allocate, 0, 0}});
    }
  }
  void put(const event& recorded) {
    ++stamp_;
    made_.steps.push_back({false, 0, recorded});
  }

  random_numbers random_;
  sequence made_;
  std::uint64_t stamp_ = first_stamp + 1;
  std::uint64_t address_ = 0x1000;
  std::uint64_t reserved_ = std::uint64_t{1} << 40;
};

}  // namespace memprof::property
