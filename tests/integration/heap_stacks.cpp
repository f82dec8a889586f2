// The stacks of this program's blocks, against what the program itself knows of its callers.
#include <memprof/backend/malloc.hpp>
#include <memprof/memprof.hpp>

#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/record/session_settings.hpp>
#include <memprof/trace/stack_name.hpp>
#include <memprof/trace/trace.hpp>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch_test_macros.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using memprof::stack_capture;
using memprof::detail::process_stacks;
using memprof::extend::event;
using memprof::extend::event_kind;
using memprof::extend::label;

/// An optimiser may leave out a block that nobody uses, but not this one.
template <class T>
T* keep(T* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

/// Where the two functions below return to.
std::uintptr_t leaf_returns_to = 0;
std::uintptr_t middle_returns_to = 0;

[[gnu::noinline]] void* leaf(std::size_t bytes) {
  leaf_returns_to = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  return keep(std::malloc(bytes));
}

[[gnu::noinline]] void* middle(std::size_t bytes) {
  middle_returns_to = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  return keep(leaf(bytes));
}

/// What a trace has of stacks.
struct recorded_stacks {
  std::map<label, std::string> names;
  std::vector<event> allocations;

  void info(const memprof::extend::capture_info&) {}
  void name(label id, std::string_view text) { names.emplace(id, text); }
  void space(const memprof::extend::space_definition&) {}
  void facts(memprof::extend::fact_part&&) {}
  void events(const event* first, const event* last, std::uint32_t) {
    for (; first != last; ++first) {
      if (first->kind == event_kind::allocate && first->space == memprof::extend::cpu_space) allocations.push_back(*first);
    }
  }

  /// The addresses of a stack, innermost first.
  [[nodiscard]] std::vector<std::uintptr_t> frames(label stack) const {
    const std::vector<std::uintptr_t> outermost_first = outer_frames(stack);
    return {outermost_first.rbegin(), outermost_first.rend()};
  }
  /// The stack of the only block of that size.
  [[nodiscard]] label stack_of(std::size_t bytes) const {
    std::vector<label> found;
    for (const event& each : allocations) {
      if (each.bytes == bytes) found.push_back(each.label);
    }
    REQUIRE(found.size() == 1);
    return found[0];
  }

 private:
  [[nodiscard]] std::vector<std::uintptr_t> outer_frames(label stack) const {
    memprof::detail::stack_text_reader in{names.at(stack)};
    std::vector<std::uintptr_t> found;
    if (in.outer().frames != 0) {
      found = outer_frames(in.outer().stack);
      REQUIRE(in.outer().frames <= found.size());
      found.resize(in.outer().frames);
    }
    for (memprof::detail::stack_frame frame; in.next(frame);) {
      std::uintptr_t loaded_at = 0;
      if (frame.module != 0) {
        const std::string text{memprof::detail::module_text::of(names.at(frame.module)).loaded_at};
        loaded_at = std::strtoull(text.c_str(), nullptr, 16);
      }
      found.push_back(loaded_at + frame.offset);
    }
    REQUIRE_FALSE(in.has_failed());
    if (in.inner().frames != 0) {
      const std::vector<std::uintptr_t> other = outer_frames(in.inner().stack);
      REQUIRE(in.inner().frames <= other.size());
      found.insert(found.end(), other.end() - static_cast<std::ptrdiff_t>(in.inner().frames), other.end());
    }
    return found;
  }
};

struct recorded_run {
  recorded_stacks stacks;
  memprof::profile profile;

  [[nodiscard]] memprof::heap_stacks facts() const {
    const auto rows = memprof::rows_of<memprof::heap_stacks>(profile.facts);
    REQUIRE(rows.size() == 1);
    return rows[0];
  }
};

template <class Work>
recorded_run recorded_by(stack_capture asked, Work work) {
  memprof::trace events;
  recorded_run result;
  {
    auto capture = memprof::begin_capture({.ring_capacity = 8, .trace = &events, .stacks = asked});
    work();
    capture.end();
    result.profile = capture.profile();
  }
  events.visit(result.stacks);
  return result;
}

/// Whether a stack has these two addresses, the first one directly inside the second.
bool has_callers(const std::vector<std::uintptr_t>& frames, std::uintptr_t inner, std::uintptr_t outer) {
  for (std::size_t index = 0; index + 1 < frames.size(); ++index) {
    if (frames[index] == inner && frames[index + 1] == outer) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("heap_stacks: a block's stack has the callers that asked for it, in order") {
  const recorded_run run = recorded_by(stack_capture::all, [] { std::free(middle(12'345)); });
  const std::vector<std::uintptr_t> frames = run.stacks.frames(run.stacks.stack_of(12'345));
  CHECK(has_callers(frames, leaf_returns_to, middle_returns_to));
  CHECK(frames.size() < memprof::detail::max_stack_frames);
  // None of the hook's, whatever the compiler made of it: `leaf` is the innermost.
  REQUIRE(frames.size() > 2);
  CHECK(frames[1] == leaf_returns_to);
  const memprof::heap_stacks facts = run.facts();
  CHECK(facts.from_bytes == 0);
  CHECK(facts.sample_bytes == 0);
  CHECK(facts.missing_blocks == 0);
  CHECK((facts.unwinder == "libunwind" || facts.unwinder == "libgcc"));
}

TEST_CASE("heap_stacks: both ways to walk find the same callers") {
  using memprof::detail::max_stack_frames;
  const memprof::detail::stack_walker of_compiler;  // which has chosen nothing
  memprof::detail::stack_walker of_library;
  of_library.choose();
  std::array<void*, max_stack_frames> left{};
  std::array<void*, max_stack_frames> right{};
  const int found = of_compiler.walk(left.data(), max_stack_frames);
  CHECK(of_library.walk(right.data(), max_stack_frames) == found);
  REQUIRE(found > 2);
  // The first is here, at another call. libgcc counts the address 0 beyond the first function of all, libunwind does not.
  CHECK(std::vector<void*>(left.begin() + 1, left.begin() + found - 1) ==
        std::vector<void*>(right.begin() + 1, right.begin() + found - 1));
}

TEST_CASE("heap_stacks: one stack has one name, and another call has another") {
  const recorded_run run = recorded_by(stack_capture::all, [] {
    std::array<void*, 3> blocks{};
    volatile std::size_t count = blocks.size();  // so that the loop has one call
    for (std::size_t index = 0; index < count; ++index) blocks[index] = middle(20'001 + index);
    void* const other = middle(20'004);
    for (void* const block : blocks) std::free(block);
    std::free(other);
  });
  const label stack = run.stacks.stack_of(20'002);
  CHECK(run.stacks.stack_of(20'003) == stack);
  CHECK(run.stacks.stack_of(20'004) != stack);
  CHECK(run.facts().missing_blocks == 0);
}

TEST_CASE("heap_stacks: every function of the family and operator new give their blocks a stack") {
  const recorded_run run = recorded_by(stack_capture::all, [] {
    std::free(keep(std::calloc(2, 1)));
    std::free(keep(std::realloc(keep(std::malloc(4)), 8)));
    std::free(keep(std::aligned_alloc(64, 32)));
    ::operator delete(keep(::operator new(16)));
    ::operator delete (keep(::operator new (64, std::align_val_t{4096})), std::align_val_t{4096});
  });
  CHECK(run.stacks.allocations.size() == 6);
  for (const event& each : run.stacks.allocations) CHECK(each.label != 0);
}

TEST_CASE("heap_stacks: a stack begins at what called the hook, by each function of the family") {
  const recorded_run run = recorded_by(stack_capture::all, [] {
    std::free(leaf(90'001));
    void* aligned = nullptr;
    if (::posix_memalign(&aligned, 64, 90'002) != 0) std::abort();
    std::free(keep(aligned));
    std::free(keep(std::realloc(keep(std::malloc(90'003)), 90'004)));
    std::free(keep(::reallocarray(nullptr, 90'005, 1)));
    std::free(keep(std::aligned_alloc(64, 90'048)));
    ::operator delete(keep(::operator new(90'006)));
    ::operator delete[](keep(::operator new[](90'007, std::nothrow)));
    ::operator delete (keep(::operator new (90'112, std::align_val_t{64})), std::align_val_t{64});
  });
  const auto module_of = [](std::uintptr_t address) {
    Dl_info loaded{};
    return ::dladdr(reinterpret_cast<void*>(address), &loaded) == 0 ? nullptr : loaded.dli_fbase;
  };
  std::set<std::uintptr_t> second;
  for (const event& each : run.stacks.allocations) {
    if (each.bytes < 90'000) continue;
    const std::vector<std::uintptr_t> frames = run.stacks.frames(each.label);
    REQUIRE(frames.size() > 2);
    CHECK(module_of(frames[0]) == module_of(leaf_returns_to));
    if (each.bytes != 90'001) second.insert(frames[1]);  // where the lambda returns to
  }
  CHECK(second.size() == 1);
}

TEST_CASE("heap_stacks: without the option no block has a stack, and nothing is said of them") {
  const recorded_run run = recorded_by(stack_capture::off, [] { std::free(middle(100'000)); });
  CHECK(run.stacks.stack_of(100'000) == 0);
  CHECK(memprof::rows_of<memprof::heap_stacks>(run.profile.facts).empty());
}

TEST_CASE("heap_stacks: of a sample, all large blocks have a stack, and few of the small ones") {
  constexpr std::size_t small = 100'000;
  const recorded_run run = recorded_by(stack_capture::sampled, [] {
    for (std::size_t count = 0; count < small; ++count) std::free(keep(std::malloc(64)));
    for (std::size_t bytes = 65'536; bytes < 65'536 + 100; ++bytes) std::free(keep(std::malloc(bytes)));
  });
  std::size_t sampled = 0;
  for (const event& each : run.stacks.allocations) {
    if (each.bytes >= 65'536) CHECK(each.label != 0);
    sampled += each.bytes == 64 && each.label != 0 ? 1 : 0;
  }
  // Each with the probability 1 - exp(-64 / 65,536) = 0.000976: 97.6 of them, with a standard deviation of 9.9.
  CHECK(sampled > 38);
  CHECK(sampled < 158);
  CHECK(run.facts().from_bytes == 65'536);
  CHECK(run.facts().sample_bytes == 65'536);
}

TEST_CASE("heap_stacks: numbers with stacks are those without") {
  const auto work = [] {
    for (std::size_t bytes = 1; bytes <= 1000; ++bytes) std::free(keep(std::malloc(bytes)));
  };
  for (const stack_capture asked : {stack_capture::off, stack_capture::sampled, stack_capture::all}) {
    const memprof::profile profile = recorded_by(asked, work).profile;
    CHECK(profile.space("cpu").allocations == 500'500);
    CHECK(profile.space("cpu").allocation_count == 1000);
    CHECK(profile.space("cpu").cumulative_peak == 1000);
    CHECK(profile.exact);
  }
}

TEST_CASE("heap_stacks: threads that ask by the same way share a stack's name") {
  constexpr int count = 8;
  const recorded_run run = recorded_by(stack_capture::all, [] {
    std::vector<std::thread> threads;
    for (int index = 0; index < count; ++index) {
      threads.emplace_back([] {
        for (int round = 0; round < 500; ++round) std::free(middle(30'001));
      });
    }
    for (std::thread& each : threads) each.join();
  });
  std::set<label> found;
  int blocks = 0;
  for (const event& each : run.stacks.allocations) {
    if (each.bytes != 30'001) continue;
    ++blocks;
    found.insert(each.label);
  }
  CHECK(blocks == count * 500);
  CHECK(run.profile.exact);
  REQUIRE(found.size() == 1);
  CHECK(has_callers(run.stacks.frames(*found.begin()), leaf_returns_to, middle_returns_to));
  CHECK(run.facts().missing_blocks == 0);
}

TEST_CASE("heap_stacks: an exception goes through the hook and is libgcc's, whichever library walks") {
  const recorded_run run = recorded_by(stack_capture::all, [] {
    std::set_new_handler([] { throw std::length_error{"no more"}; });
    const volatile std::size_t too_much = std::size_t{1} << 60;
    bool is_caught = false;
    try {
      keep(::operator new(too_much));
    } catch (const std::length_error&) {
      is_caught = true;
    }
    std::set_new_handler(nullptr);
    if (!is_caught) std::abort();
  });
  CHECK(run.profile.exact);
  Dl_info raises{};
  void* const function = ::dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");
  REQUIRE(function != nullptr);
  REQUIRE(::dladdr(function, &raises) != 0);
  CHECK(std::string{raises.dli_fname}.find("libunwind") == std::string::npos);
}

TEST_CASE("heap_stacks: a child of fork records stacks in a capture of its own, and the parent goes on") {
  const recorded_run run = recorded_by(stack_capture::all, [] {
    std::free(middle(40'001));
    const ::pid_t child = ::fork();
    if (child == 0) {
      std::free(middle(40'002));  // in no capture
      memprof::trace events;
      auto capture = memprof::begin_capture({.trace = &events, .stacks = stack_capture::all});
      std::free(middle(40'003));
      capture.end();
      recorded_stacks own;
      events.visit(own);
      const bool is_sound =
          own.allocations.size() == 1 && has_callers(own.frames(own.allocations[0].label), leaf_returns_to, middle_returns_to);
      ::_exit(is_sound ? 0 : 1);
    }
    int status = 1;
    ::waitpid(child, &status, 0);
    if (status != 0) std::abort();
    std::free(middle(40'004));
  });
  CHECK(run.stacks.stack_of(40'004) != 0);
  CHECK(run.facts().missing_blocks == 0);
}

TEST_CASE("heap_stacks: a child of fork has stacks even if other threads walked at that moment") {
  std::atomic<bool> is_over{false};
  const recorded_run run = recorded_by(stack_capture::all, [&] {
    std::vector<std::thread> threads;
    for (int index = 0; index < 2; ++index) {
      threads.emplace_back([&] {
        while (!is_over.load()) std::free(middle(50'001));
      });
    }
    for (int round = 0; round < 50; ++round) {
      const ::pid_t child = ::fork();
      if (child == 0) {
        memprof::detail::process_stacks.walker = {};  // libgcc's way asks the loader each time
        auto capture = memprof::begin_capture({.stacks = stack_capture::all});
        std::free(middle(50'002));
        capture.end();
        ::_exit(0);
      }
      int status = 1;
      ::waitpid(child, &status, 0);
      if (status != 0) std::abort();
    }
    is_over.store(true);
    for (std::thread& each : threads) each.join();
  });
  CHECK(run.profile.exact);
}

namespace {

volatile std::sig_atomic_t handled = 0;

void allocate_in_handler(int) {
  const memprof::detail::errno_guard kept;
  handled = handled + 1;
}

}  // namespace

TEST_CASE("heap_stacks: signals that come while stacks are walked change no number") {
  const recorded_run run = recorded_by(stack_capture::all, [] {
    std::signal(SIGALRM, allocate_in_handler);
    const ::itimerval often{{0, 100}, {0, 100}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    for (int round = 0; round < 20'000; ++round) std::free(middle(60'001));
    while (handled == 0) std::free(middle(60'001));
    const ::itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    std::signal(SIGALRM, SIG_DFL);
  });
  CHECK(run.profile.exact);
  CHECK(run.profile.space("cpu").allocation_count >= 20'000);
  CHECK(run.facts().missing_blocks == 0);
}

TEST_CASE("heap_stacks: a block from within a walk has no stack and is counted; after a walk that never ended all is as before") {
  const recorded_run run = recorded_by(stack_capture::all, [] {
    std::uintptr_t& walking_at = memprof::detail::this_stack_thread.walking_at;
    walking_at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));  // as in a handler that interrupts a walk there
    void* const within = middle(70'001);
    walking_at = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) - 100'000;  // of a walk left by `siglongjmp`
    void* const after = middle(70'002);
    walking_at = 0;
    std::free(within);
    std::free(after);
  });
  CHECK(run.stacks.stack_of(70'001) == 0);
  CHECK(run.stacks.stack_of(70'002) != 0);
  CHECK(run.facts().missing_blocks == 1);
  CHECK(run.profile.exact);
}

TEST_CASE("heap_stacks: a trace that keeps the newest events still has their stacks") {
  memprof::trace events;
  {
    auto capture = memprof::begin_capture({.trace = &events, .trace_limit = 65'536, .stacks = stack_capture::all});
    std::free(middle(80'001));
    for (int round = 0; round < 200'000; ++round) std::free(keep(std::malloc(100)));
    std::free(middle(80'002));
    capture.end();
  }
  recorded_stacks stacks;
  events.visit(stacks);
  CHECK(stacks.allocations.size() < 200'000);
  const std::vector<std::uintptr_t> frames = stacks.frames(stacks.stack_of(80'002));
  CHECK(has_callers(frames, leaf_returns_to, middle_returns_to));
}

TEST_CASE("heap_stacks: the walking library has no descriptor among the lowest, which daemons close and reuse") {
  const auto low = [] {
    std::vector<int> open;
    for (int number = 0; number < 256; ++number) {
      if (::fcntl(number, F_GETFD) != -1) open.push_back(number);
    }
    return open;
  };
  const std::vector<int> before = low();
  (void)recorded_by(stack_capture::all, [] {});
  CHECK(low() == before);
}

TEST_CASE("heap_stacks: a session records them if the environment says so, in a trace file") {
  const auto settled = [](const char* line) {
    const std::array<const char*, 2> environment{line, nullptr};
    return memprof::detail::settled({}, environment.data());
  };
  CHECK(settled("MEMPROF_STACKS=all").capture.stacks == stack_capture::all);
  CHECK(settled("MEMPROF_STACKS=all").trace);
  CHECK(settled("MEMPROF_STACKS=sampled").capture.stacks == stack_capture::sampled);
  CHECK(settled("MEMPROF_STACKS=1").capture.stacks == stack_capture::sampled);
  CHECK(settled("MEMPROF_STACKS=off").capture.stacks == stack_capture::off);
  CHECK_FALSE(settled("MEMPROF_STACKS=off").trace);
}

TEST_CASE("heap_stacks: bytes are sampled with the probabilities that the estimate assumes") {
  // Sizes from 1 byte to below 64 KiB. What a sample says of their sum is each sampled block's bytes, divided by the probability
  // of its being there.
  std::vector<std::size_t> sizes;
  double total = 0;
  double variance = 0;
  const auto probability = [](std::size_t bytes) { return 1 - std::exp(-static_cast<double>(bytes) / 65'536); };
  for (std::size_t bytes = 1; bytes < 65'536; bytes = bytes * 3 / 2 + 1) {
    for (int count = 0; count < 20; ++count) sizes.push_back(bytes);
  }
  for (const std::size_t bytes : sizes) {
    const auto each = static_cast<double>(bytes);
    total += each;
    variance += each * each * (1 - probability(bytes)) / probability(bytes);
  }
  constexpr int seeds = 2000;
  double sum = 0;
  double squares = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    memprof::detail::byte_sample sample;
    sample.seed(static_cast<std::uint64_t>(seed));
    double estimate = 0;
    for (const std::size_t bytes : sizes) {
      if (sample.takes(bytes)) estimate += static_cast<double>(bytes) / probability(bytes);
    }
    sum += estimate;
    squares += (estimate - total) * (estimate - total);
  }
  const double mean = sum / seeds;
  CHECK(std::abs(mean - total) < 4 * std::sqrt(variance / seeds));
  // Independent of each other: the variance is the sum of the blocks'. Its own relative error is some sqrt(2 / seeds) = 3 %.
  CHECK(std::abs(squares / seeds / variance - 1) < 0.2);
}
