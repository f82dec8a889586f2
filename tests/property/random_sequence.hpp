#pragma once

#include <memprof/ledger/space_ledger.hpp>
#include <memprof/trace/core_range.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/memory_name.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace memprof::property {

using namespace extend;

/// Splitmix64: the same numbers on every platform, unlike the distributions of <random>.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31);
  }
  /// A number below `bound`, which is not 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <class T, std::size_t Count>
  const T& pick(const std::array<T, Count>& choices) {
    return choices[below(Count)];
  }

 private:
  std::uint64_t state_;
};

/// An event of a thread, or the end of a segment (then `recorded.label` is its name and `recorded.stamp` its end).
struct step {
  bool is_segment_end;
  std::uint32_t thread;
  event recorded;
};

inline constexpr std::uint32_t space_count = 6;

/// What a test feeds to the ledger and to the model.
struct sequence {
  const char* personality = "";
  ledger_options options;
  std::array<std::int64_t, space_count> capacities{};  ///< by space; 0: none
  std::array<bool, space_count> are_per_core{};        ///< whether they are those of each core
  std::array<label, space_count> memories{};           ///< in which each space lies; 0: one of its own
  bool is_complete = false;                            ///< whether the last segment ends too
  std::vector<step> steps;
};

/// The kind of program a sequence comes from. Numbers without a unit are percentages of the steps.
struct personality {
  enum class size_range { few, training, above_32_bits, hostile };

  const char* name;
  std::uint64_t min_steps, max_steps;
  std::uint64_t spaces, threads;
  std::uint64_t addresses;  ///< how many there are; 0: always a new one
  size_range sizes;
  bool frees_newest;
  unsigned segment_ends, scopes, annotations, strange;
  std::uint64_t run;          ///< longest run of one thread
  std::uint64_t depth;        ///< deepest nesting
  unsigned on_cores = 0;      ///< of the allocations and frees
  std::uint64_t columns = 0;  ///< of a grid of cores; as many rows
  unsigned reservations = 1;  ///< of what is neither a scope nor an annotation
  unsigned on_streams = 2;    ///< of the allocations, frees and reservations
  unsigned begins = 50;       ///< of the scopes' events while one is open
};

inline constexpr std::array<personality, 15> personalities{{
    {"training", 60, 300, 1, 1, 0, personality::size_range::training, true, 3, 25, 5, 0, 300, 4},
    {"random", 20, 200, 3, 2, 64, personality::size_range::training, false, 3, 15, 5, 1, 20, 3},
    {"collisions", 20, 150, 2, 3, 5, personality::size_range::few, false, 5, 15, 10, 2, 5, 3},
    {"hostile", 20, 200, 6, 4, 12, personality::size_range::hostile, false, 5, 20, 8, 15, 4, 6},
    {"pipeline", 40, 250, 2, 4, 40, personality::size_range::above_32_bits, false, 2, 20, 5, 1, 3, 3},
    {"many segments", 100, 300, 2, 1, 0, personality::size_range::few, false, 45, 5, 5, 0, 10, 2},
    {"late spaces", 30, 150, 6, 2, 30, personality::size_range::training, false, 10, 15, 5, 1, 10, 2},
    {"operations", 40, 250, 2, 2, 20, personality::size_range::few, false, 3, 50, 3, 3, 8, 6},
    {"cores", 40, 250, 2, 3, 0, personality::size_range::training, false, 4, 20, 3, 0, 10, 3, 90, 5},
    {"few cores", 20, 200, 1, 2, 6, personality::size_range::few, false, 8, 15, 3, 1, 6, 2, 95, 2},
    {"hostile cores", 20, 120, 3, 4, 8, personality::size_range::hostile, false, 8, 10, 5, 15, 4, 3, 80, 3},
    {"caching", 40, 200, 2, 2, 24, personality::size_range::few, false, 8, 10, 3, 2, 10, 2, 0, 0, 70},
    {"streams", 40, 250, 2, 3, 40, personality::size_range::training, true, 5, 15, 3, 0, 10, 2, 0, 0, 20, 90},
    {"hostile streams", 20, 200, 3, 2, 8, personality::size_range::hostile, false, 6, 10, 3, 15, 5, 2, 0, 0, 30, 80},
    {"deep", 700, 900, 1, 1, 16, personality::size_range::few, true, 1, 80, 3, 0, 50, 1000, 0, 0, 1, 2, 96},
}};

inline constexpr std::uint32_t label_count = 12;      ///< labels 1 .. label_count have a text; the last 4 are annotations
inline constexpr std::uint32_t operation_labels = 4;  ///< few names, so that they repeat
inline constexpr std::uint64_t first_stamp = 1000;

/// Makes one sequence. Equal seeds make equal sequences.
class sequence_generator {
 public:
  sequence_generator(const personality& kind, std::uint64_t seed) : kind_(kind), random_(seed) {}

  [[nodiscard]] sequence make(std::uint64_t times_longer) {
    sequence made;
    made.personality = kind_.name;
    made.options.timeline_points = random_.pick(std::array<std::uint32_t, 8>{0, 1, 2, 3, 7, 16, 64, 4096});
    made.options.largest_blocks = random_.pick(std::array<std::uint32_t, 4>{0, 1, 3, 10});
    made.options.owners_per_segment = random_.pick(std::array<std::uint32_t, 4>{0, 1, 3, 32});
    made.options.full_segments = random_.pick(std::array<std::uint32_t, 6>{4, 5, 8, 13, 64, 1000});
    made.options.segment_names = random_.pick(std::array<std::uint32_t, 4>{1, 3, 5, 64});
    made.options.operations = random_.pick(std::array<std::uint32_t, 5>{1, 2, 6, 4096, 4096});
    made.is_complete = random_.chance(50);
    if (random_.chance(30)) made.options.leading_thread = leading_thread;
    for (std::int64_t& capacity : made.capacities) {
      if (random_.chance(90)) capacity = random_capacity();
    }
    for (bool& is_per_core : made.are_per_core) is_per_core = random_.chance(kind_.on_cores == 0 ? 5 : 70);
    const std::array<label, 5> memories{0, 1, host_memory, host_memory, host_memory};
    for (label& memory : made.memories) memory = random_.pick(memories);
    const std::uint64_t count = times_longer * (kind_.min_steps + random_.below(kind_.max_steps - kind_.min_steps + 1));
    std::uint64_t left_of_run = 0;
    while (made.steps.size() < count) {
      if (left_of_run-- == 0) {
        thread_ = static_cast<std::uint32_t>(random_.below(kind_.threads));
        left_of_run = random_.below(kind_.run);
      }
      // Later spaces show up later in the sequence.
      spaces_ = 1 + made.steps.size() * kind_.spaces / (count + 1);
      made.steps.push_back(next_step());
    }
    return made;
  }

 private:
  /// What a thread knows of its operations.
  struct open_operation {
    std::uint32_t name, number, outer;
  };
  struct open_operations {
    std::uint32_t thread = 0;  ///< its number, once there was another before it in its ring
    bool is_announced = false;
    std::uint32_t last = 0;
    std::uint32_t innermost = 0;
    std::vector<open_operation> open{};
  };

  [[nodiscard]] step next_step() {
    if (random_.chance(60)) stamp_ += 1 + random_.below(50);
    if (random_.chance(kind_.segment_ends)) {
      return {true, 0, {stamp_, 0, 0, 1 + static_cast<std::uint32_t>(random_.below(label_count)), event_kind::allocate, 0, 0}};
    }
    event recorded{random_.chance(60) ? stamp_ : 0, 0, 0, 0, event_kind::allocate, 0, 0};
    recorded.space = static_cast<std::uint8_t>(random_.below(spaces_));
    std::uint32_t thread = thread_;
    if (!is_leader_announced_ && random_.chance(10)) {
      is_leader_announced_ = true;
      open_[thread_] = {.thread = ++last_thread_, .is_announced = true};
      return {false, thread, {recorded.stamp, last_thread_, leading_thread, 0, event_kind::thread_begin, 0, 0}};
    }
    if (open_[thread_].thread != 0 && !open_[thread_].is_announced) {
      open_[thread_].is_announced = true;
      return {false, thread, {recorded.stamp, open_[thread_].thread, 0, 0, event_kind::thread_begin, 0, 0}};
    }
    if (random_.chance(kind_.scopes)) {
      make_scope(recorded, thread);
    } else if (random_.chance(kind_.annotations)) {
      make_annotation(recorded);
      if (random_.chance(20)) make_use(recorded);
    } else if (random_.chance(kind_.reservations)) {
      make_reservation(recorded);
    } else if (random_.chance(kind_.on_streams / 4)) {
      make_completion(recorded);
    } else if (random_.chance(kind_.on_cores)) {
      make_on_cores(recorded);
    } else if (random_.chance(48)) {
      make_deallocation(recorded);
    } else {
      make_allocation(recorded);
    }
    if (random_.chance(kind_.on_streams)) make_on_stream(recorded);
    if (random_.chance(kind_.strange)) make_strange(recorded, thread);
    return {false, thread, recorded};
  }

  void make_allocation(event& recorded) {
    recorded.address = kind_.addresses == 0 ? fresh_address_ += 64 : random_.below(kind_.addresses) * stride_;  // 0 among them
    recorded.bytes = random_size();
    recorded.tag = static_cast<std::uint16_t>(random_.chance(30) ? random_.below(9) : 0);
    live_[recorded.space].push_back({recorded.address, recorded.bytes});
  }

  void make_deallocation(event& recorded) {
    recorded.kind = event_kind::deallocate;
    auto& live = live_[recorded.space];
    if (random_.chance(4)) {
      recorded.kind = event_kind::deallocate_range;
      recorded.address = live.empty() ? stride_ : live[random_.below(live.size())].first;
      recorded.bytes = random_.below(6) * stride_;
      recorded.tag = random_.chance(20) ? 1 : 0;
      return;
    }
    if (live.empty()) {
      recorded.address = random_.below(8) * stride_;
      recorded.bytes = random_.chance(50) ? random_size() : 0;
      return;
    }
    const std::size_t near_end = random_.below(live.size() < 3 ? live.size() : 3);
    const std::size_t index = kind_.frees_newest && random_.chance(95) ? live.size() - 1 - near_end : random_.below(live.size());
    recorded.address = live[index].first;
    if (random_.chance(50)) recorded.bytes = live[index].second;
    live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
  }

  /// Of a block that is live, was, or never will be.
  void make_use(event& recorded) {
    recorded.kind = event_kind::use;
    recorded.label = 0;
    recorded.tag = random_.chance(50) ? 1 : 0;
  }

  /// Ranges of a short row of places, so that they meet, overlap and are cut.
  void make_reservation(event& recorded) {
    recorded.kind = random_.chance(55) ? event_kind::reserve : event_kind::release;
    recorded.address = random_.below(24) * 8;
    recorded.bytes = random_.chance(70) ? random_.below(6) * 8 : random_size();
    if (random_.chance(2)) recorded.address = ~std::uint64_t{0} - random_.below(16);
  }

  /// Gives a stream to what may have one; frees often name another than the allocation did.
  void make_on_stream(event& recorded) {
    const auto name = static_cast<std::uint32_t>(random_.below(6));
    switch (recorded.kind) {
      case event_kind::allocate:
        recorded.kind = random_.chance(8) ? event_kind::out_of_memory : event_kind::allocate_on_stream;
        recorded.label = name;
        break;
      case event_kind::deallocate:
        recorded.kind = event_kind::deallocate_on_stream;
        recorded.label = name;
        if (random_.chance(60)) {  // streams may still use it
          recorded.tag = 1;
          waiting_[recorded.space].push_back(recorded.address);
        }
        break;
      case event_kind::reserve:
      case event_kind::release: recorded.label = name; break;
      default: break;
    }
  }

  /// No stream uses a freed block any more; sometimes there is none, or the address has come again meanwhile.
  void make_completion(event& recorded) {
    recorded.kind = event_kind::complete_deallocation;
    auto& waiting = waiting_[recorded.space];
    if (random_.chance(50)) recorded.bytes = random_size();
    if (waiting.empty() || random_.chance(10)) {
      recorded.address = random_.below(8) * stride_;
      return;
    }
    const std::size_t index = random_.below(waiting.size());
    recorded.address = waiting[index];
    waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void make_on_cores(event& recorded) {
    const core_range cores = random_cores();
    recorded.label = cores.packed();
    if (random_.chance(8)) {
      recorded.kind = event_kind::deallocate_circular_buffers;
      if (random_.chance(30)) recorded.label = any_core.packed();
    } else if (random_.chance(45)) {
      make_deallocation(recorded);
      if (recorded.kind == event_kind::deallocate) recorded.kind = event_kind::deallocate_on_cores;
    } else {
      make_allocation(recorded);
      recorded.kind = event_kind::allocate_on_cores;
      recorded.tag = static_cast<std::uint16_t>(recorded.tag + 256 * random_.below(2));
    }
  }

  /// A rectangle, of which every tenth is all cores.
  [[nodiscard]] core_range random_cores() {
    const auto last = static_cast<std::uint8_t>(kind_.columns - 1);
    if (random_.chance(10)) return {0, 0, last, last};
    const auto between = [this](std::uint8_t first, std::uint8_t end) {
      return static_cast<std::uint8_t>(first + random_.below(end - first + std::uint64_t{1}));
    };
    const std::uint8_t x = between(0, last);
    const std::uint8_t y = between(0, last);
    return {x, y, between(x, last), between(y, last)};
  }

  void make_annotation(event& recorded) {
    recorded.kind = event_kind::annotate;
    const auto& live = live_[recorded.space];
    recorded.address = live.empty() || random_.chance(20) ? random_.below(16) * stride_ : live[random_.below(live.size())].first;
    recorded.tag = static_cast<std::uint16_t>(random_.below(9));
    recorded.label = random_.chance(30) ? 0 : static_cast<std::uint32_t>(label_count - random_.below(4));
    if (random_.chance(50)) recorded.space = any_space;
  }

  /// One in six ends out of order, and one in twelve on another thread, as those of coroutines do.
  void make_scope(event& recorded, std::uint32_t& thread) {
    open_operations& at = open_[thread_];
    if (!at.open.empty() && (at.open.size() >= kind_.depth || !random_.chance(kind_.begins))) {
      const std::size_t index = random_.chance(17) ? random_.below(at.open.size()) : at.open.size() - 1;
      const open_operation ended = at.open[index];
      at.open.erase(at.open.begin() + static_cast<std::ptrdiff_t>(index));
      recorded.kind = event_kind::scope_end;
      recorded.label = ended.name;
      recorded.address = detail::scope_address(ended.number, 0);
      if (random_.chance(8)) {
        recorded.address = detail::scope_address(ended.number, at.thread == 0 ? thread_ : at.thread);
        thread = static_cast<std::uint32_t>(random_.below(kind_.threads));
      } else if (at.innermost == ended.number) {
        at.innermost = ended.outer;
      }
      return;
    }
    recorded.kind = event_kind::scope_begin;
    recorded.label = 1 + static_cast<std::uint32_t>(random_.below(operation_labels));
    recorded.tag = static_cast<std::uint16_t>(random_.chance(40) ? random_.below(9) : 0);
    recorded.address = detail::scope_address(++at.last, at.innermost);
    if (random_.chance(15)) make_adoption(recorded);
    at.open.push_back({recorded.label, at.last, at.innermost});
    at.innermost = at.last;
    if (kind_.depth < 100 && random_.chance(2)) at = {.thread = ++last_thread_};  // the thread ends here
  }

  /// Of an operation that is open or has ended, of any thread; one in ten is the other's innermost.
  void make_adoption(event& recorded) {
    const auto ring = static_cast<std::uint32_t>(random_.below(kind_.threads));
    const open_operations& of = open_[ring];
    const std::uint32_t number = random_.chance(10) ? of.innermost
                                 : random_.chance(20) || of.open.empty()
                                     ? static_cast<std::uint32_t>(random_.below(std::uint64_t{of.last} + 1))
                                     : of.open[random_.below(of.open.size())].number;
    recorded.bytes = detail::scope_address(number, of.thread == 0 ? ring : of.thread);
  }

  /// What no honest source sends, or what is left when others' events were dropped.
  void make_strange(event& recorded, std::uint32_t& thread) {
    switch (random_.below(kind_.on_cores == 0 ? 11 : 14)) {
      case 0: recorded.kind = static_cast<event_kind>(random_.pick(std::array<std::uint8_t, 3>{0, 250, 255})); break;
      case 1: recorded.tag = static_cast<std::uint16_t>(9 + random_.below(65527)); break;
      case 2: recorded.kind = event_kind::thread_begin; break;
      case 3: recorded.kind = event_kind::scope_end; [[fallthrough]];  // of a scope that is not the innermost, or no scope
      case 4: recorded.address = random_.pick(std::array<std::uint64_t, 6>{0, 1, 2, 4, 0xFFFFFFFE, 0xFFFFFFFF}); break;
      case 5: recorded.bytes = random_.next(); break;
      case 6: recorded.address = random_.next(); break;
      case 7: recorded.label = static_cast<std::uint32_t>(random_.below(label_count + 3)); break;
      case 8: recorded.space = any_space; break;
      case 11:  // corners exchanged
        if (is_on_cores(recorded))
          recorded.label = random_.pick(std::array<std::uint32_t, 3>{0x00000001, 0x00000100, 0x0101FFFF});
        break;
      case 12:  // cores that no other block reaches
        if (is_on_cores(recorded)) recorded.label = core_range{0, 0, static_cast<std::uint8_t>(random_.below(12)), 9}.packed();
        break;
      case 13:  // the same address freed as another sort of block
        if (is_on_cores(recorded)) recorded.kind = random_.chance(50) ? event_kind::deallocate : event_kind::deallocate_on_cores;
        break;
      case 9: thread = random_.pick(std::array<std::uint32_t, 3>{1500, 1U << 20, 0xFFFFFFFF}); break;
      default: recorded.stamp = 1 + random_.below(stamp_); break;  // a clock that went back
    }
  }

  /// Room for some blocks.
  [[nodiscard]] std::int64_t random_capacity() {
    constexpr std::uint64_t greatest = (std::uint64_t{1} << 63) - 1;
    std::uint64_t room = random_.below(64);
    for (std::uint64_t blocks = random_.below(6); blocks > 0; --blocks) {
      const std::uint64_t more = random_size();
      room += more < greatest - room ? more : 0;
    }
    return static_cast<std::int64_t>(room);
  }

  [[nodiscard]] static bool is_on_cores(const event& recorded) {
    return recorded.kind >= event_kind::allocate_on_cores && recorded.kind <= event_kind::deallocate_circular_buffers;
  }

  [[nodiscard]] std::uint64_t random_size() {
    using range = personality::size_range;
    if (random_.chance(3)) return 0;
    switch (kind_.sizes) {
      case range::few: return random_.below(4) * 8;  // so that many blocks and owners are equally large
      case range::training: return std::uint64_t{256} << random_.below(8);
      case range::above_32_bits: return random_.below(std::uint64_t{1} << (20 + random_.below(20)));
      case range::hostile: break;
    }
    if (random_.chance(90)) return random_.below(1000);
    return random_.pick(std::array<std::uint64_t, 6>{std::uint64_t{1} << 32, std::uint64_t{1} << 60, std::uint64_t{1} << 62,
                                                     (std::uint64_t{1} << 63) - 1, std::uint64_t{1} << 63, ~std::uint64_t{0}});
  }

  const personality& kind_;
  random_numbers random_;
  // In one sequence of four all addresses have neighbouring hashes, so that they crowd one place of the table of live blocks:
  // the stride is the inverse of the hash's multiplier.
  std::uint64_t stride_ = random_.chance(25) ? 0xF1DE83E19937733DU : 64;
  std::uint64_t stamp_ = first_stamp;
  std::uint64_t fresh_address_ = 0x7F0000000000;
  static constexpr std::uint64_t leading_thread = 4242;
  bool is_leader_announced_ = false;
  std::uint32_t thread_ = 0;
  std::uint32_t last_thread_ = 1000;  ///< its number; no two threads have one, and each counts its operations anew
  std::uint64_t spaces_ = 1;
  std::array<std::vector<std::pair<std::uint64_t, std::uint64_t>>, space_count> live_;  // address and size
  std::array<std::vector<std::uint64_t>, space_count> waiting_;                         // addresses of freed blocks
  std::map<std::uint32_t, open_operations> open_;                                       // by ring
};

}  // namespace memprof::property
