// Walks that reuse what the last one found, against whole walks by a library, in programs that do at random what changes a stack:
// recursion through functions with all kinds of frames, `longjmp`, exceptions, coroutines, signal handlers with a stack of their
// own, and threads.
#include <memprof/backend/frame_rules.hpp>
#include <memprof/backend/stack_reuse.hpp>
#include <memprof/backend/stack_walk.hpp>
#include <memprof/detail/pages.hpp>
#include <memprof/record/registry.hpp>
#include <property/sequence_settings.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <ucontext.h>

#if defined(__x86_64__)

namespace {

using namespace memprof::detail;

constinit frame_rules rules;
stack_walker library;

/// Calls that may be left at once, in one coroutine or in its absence.
struct chances {
  std::array<std::jmp_buf*, 64> jumps;
  std::size_t jump_count;
  int catchers;
};

struct coroutine;

/// What one thread does.
struct world {
  std::mt19937_64 random;
  std::unique_ptr<last_walk> last = std::make_unique<last_walk>();
  chances* at = nullptr;
  std::array<coroutine*, 3> coroutines{};
  coroutine* inside = nullptr;  ///< runs
  bool is_handling = false;     ///< a signal
  int left = 0;                 ///< actions
  int walks = 0;                ///< outside handlers and coroutines, whose outermost frames have no rule
  int by_rules = 0;
  int wrong = 0;

  [[nodiscard]] unsigned below(unsigned end) { return static_cast<unsigned>(random() % end); }
};
thread_local world* self = nullptr;

[[gnu::noinline]] void check_here() {
  const call_state caller = state_of_caller();
  const bool is_counted = !self->is_handling && self->inside == nullptr;
  if (is_counted) ++self->walks;
  if (!self->last->walk(memprof::abi_1::process_registry, rules, caller)) return;
  if (is_counted) ++self->by_rules;
  std::array<void*, max_stack_frames> reused{};
  const std::size_t count = self->last->copy(reused.data());
  std::array<void*, max_stack_frames + 8> whole{};
  const int found = library.walk(whole.data(), static_cast<int>(whole.size()));
  void** const end = whole.data() + found;
  void** const first = std::find(whole.data(), end, reinterpret_cast<void*>(caller.returns_to));
  const auto expected = std::min(static_cast<std::size_t>(end - first), max_stack_frames);
  if (count != expected || !std::equal(reused.data(), reused.data() + count, first)) ++self->wrong;
}

void act(int depth);
void touch(const volatile void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

[[gnu::noinline]] void plain(int depth) {
  act(depth);
  touch(&depth);
}

/// Its frame is found by rbp alone.
[[gnu::noinline]] void with_room(int depth) {
  auto* const room = static_cast<volatile char*>(__builtin_alloca(16 * (1 + self->below(40))));
  touch(room);
  act(depth);
  touch(room);
}

/// Aligns its stack.
[[gnu::noinline]] void aligned(int depth) {
  alignas(64) volatile char buffer[192];
  touch(buffer);
  act(depth);
  touch(buffer);
}

/// Both.
[[gnu::noinline]] void aligned_with_room(int depth) {
  alignas(64) volatile char buffer[64];
  touch(buffer);
  auto* const room = static_cast<volatile char*>(__builtin_alloca(16 * (1 + self->below(40))));
  touch(room);
  act(depth);
  touch(room);
}

/// Keeps numbers in all registers that a call preserves, rbp among them.
[[gnu::noinline]] std::uint64_t with_registers(int depth, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t d = a * b;
  std::uint64_t e = b ^ c;
  std::uint64_t f = c + a;
  for (unsigned round = self->below(3) + 1; round != 0; --round) {
    act(depth);
    a += d, b ^= e, c -= f, d += a, e ^= b, f += c;
  }
  return a ^ b ^ c ^ d ^ e ^ f;
}

[[gnu::noinline]] void catching(int depth) {
  chances& at = *self->at;
  const std::size_t jumps = at.jump_count;
  const int catchers = at.catchers;
  ++at.catchers;
  try {
    act(depth);
  } catch (int) {
    check_here();
  }
  at.catchers = catchers;
  at.jump_count = jumps;
}

[[gnu::noinline]] void jumped_to(int depth) {
  std::jmp_buf place;
  chances* const volatile at = self->at;
  const volatile std::size_t jumps = at->jump_count;
  const volatile int catchers = at->catchers;
  if (jumps < at->jumps.size() && setjmp(place) == 0) {
    at->jumps[at->jump_count++] = &place;
    act(depth);
  } else {
    check_here();
  }
  at->jump_count = jumps;
  at->catchers = catchers;
}

struct coroutine {
  ucontext_t own{};
  ucontext_t resumer{};
  chances can{};
  void* stack = nullptr;
  bool is_over = true;

  static constexpr std::size_t stack_bytes = std::size_t{1} << 20;
};

void run_coroutine() {
  coroutine& own = *self->inside;
  ++own.can.catchers;
  try {
    act(6);
  } catch (int) {
  }
  own.is_over = true;  // it returns to its resumer
}

void begin(coroutine& made) {
  made.stack = ::mmap(nullptr, coroutine::stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::getcontext(&made.own);
  made.own.uc_stack = {made.stack, 0, coroutine::stack_bytes};
  made.own.uc_link = &made.resumer;
  made.can = {};
  made.is_over = false;
  ::makecontext(&made.own, run_coroutine, 0);
}

/// Goes on with a coroutine until that yields or ends. The stack of one that has ended is gone.
[[gnu::noinline]] void resume(coroutine& other) {
  if (other.is_over) begin(other);
  chances* const before = self->at;
  self->at = &other.can;
  self->inside = &other;
  ::swapcontext(&other.resumer, &other.own);
  self->inside = nullptr;
  self->at = before;
  if (other.is_over) ::munmap(other.stack, coroutine::stack_bytes);
}

[[gnu::noinline]] void yield() {
  coroutine& own = *self->inside;
  ::swapcontext(&own.own, &own.resumer);
}

void handle(int) {
  world& here = *self;
  chances* const before = here.at;
  chances none{};
  here.at = &none;
  here.is_handling = true;
  plain(2);
  here.is_handling = false;
  here.at = before;
}

/// Leaves or suspends what runs, if it may.
[[gnu::noinline]] void leave() {
  world& here = *self;
  switch (here.below(6)) {
    case 0:
      if (here.at->catchers != 0) throw 1;
      break;
    case 1:
      if (here.at->jump_count != 0 && here.at->catchers == 0)  // no frame that catches is jumped over
        std::longjmp(*here.at->jumps[here.below(static_cast<unsigned>(here.at->jump_count))], 1);
      break;
    case 2:
      if (here.inside != nullptr && !here.is_handling) yield();
      break;
    case 3:
      if (here.inside == nullptr && !here.is_handling) resume(*here.coroutines[here.below(3)]);
      break;
    case 4:
      if (!here.is_handling) std::raise(SIGUSR1);
      break;
    default: check_here();
  }
}

void act(int depth) {
  world& here = *self;
  for (unsigned round = here.below(3) + 1; round != 0 && here.left > 0; --round) {
    --here.left;
    if (depth <= 0 || here.below(8) == 0) {
      check_here();
      leave();
      continue;
    }
    const int inner = depth - 1;
    switch (here.below(8)) {
      case 0: with_room(inner); break;
      case 1: aligned(inner); break;
      case 2: aligned_with_room(inner); break;
      case 3: (void)with_registers(inner, here.random(), here.random(), here.random()); break;
      case 4: catching(inner); break;
      case 5: jumped_to(inner); break;
      case 6: check_here(); break;
      default: plain(inner);
    }
  }
}

/// One thread's random program.
void run(world& here, int actions) {
  self = &here;
  std::vector<unsigned char> handlers_stack(std::size_t{64} << 10);
  const stack_t alternate{handlers_stack.data(), 0, handlers_stack.size()};
  ::sigaltstack(&alternate, nullptr);
  std::array<coroutine, 3> coroutines;
  std::transform(coroutines.begin(), coroutines.end(), here.coroutines.begin(), [](coroutine& each) { return &each; });
  chances outside{};
  here.at = &outside;
  here.left = actions;
  while (here.left > 0) {
    outside = {};
    here.at = &outside;
    plain(static_cast<int>(here.below(100)) < 5 ? 600 : static_cast<int>(here.below(90)));
  }
  for (coroutine& each : coroutines) {
    if (!each.is_over) ::munmap(each.stack, coroutine::stack_bytes);
  }
  const stack_t none{nullptr, SS_DISABLE, 0};
  ::sigaltstack(&none, nullptr);
}

/// As deep as that, with the check inside.
[[gnu::noinline]] void descend(int depth, void (*inside)()) {
  if (depth == 0) return inside();
  descend(depth - 1, inside);
  touch(&depth);
}

}  // namespace

TEST_CASE("stack_reuse: walks that reuse the last one are whole walks, in random programs") {
  library.choose();
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  ::sigaction(SIGUSR1, &action, nullptr);
  const std::uint64_t sequences = memprof::property::from_environment("MEMPROF_TEST_SEQUENCES", 40);
  const std::uint64_t base = memprof::property::base_seed();
  for (std::uint64_t seed = base; seed < base + sequences; seed += 4) {
    std::array<world, 4> worlds;
    std::vector<std::thread> threads;
    for (std::size_t index = 0; index < worlds.size(); ++index) {
      worlds[index].random.seed(seed + index);
      threads.emplace_back([&world = worlds[index]] { run(world, 4000); });
    }
    for (std::thread& each : threads) each.join();
    for (std::size_t index = 0; index < worlds.size(); ++index) {
      INFO("seed " << seed + index);
      CHECK(worlds[index].wrong == 0);
      CHECK(worlds[index].walks > 100);
      CHECK(worlds[index].by_rules == worlds[index].walks);
    }
  }
}

TEST_CASE("stack_reuse: stacks of any depth, growing and shrinking") {
  library.choose();
  world here;
  self = &here;
  for (const int depth : {1, 5, 70, 60, 63, 64, 65, 400, 520, 1500, 1450, 1000, 300, 62, 3, 700, 701, 1300, 2}) {
    descend(depth, check_here);
    descend(depth, check_here);
  }
  CHECK(here.walks == 38);
  CHECK(here.by_rules == 38);
  CHECK(here.wrong == 0);
}

TEST_CASE("stack_reuse: what has not changed is not walked again") {
  static world here;
  static frame_rules known;
  self = &here;
  const auto walk = [] {
    const call_state caller = state_of_caller();
    if (here.last->walk(memprof::abi_1::process_registry, known, caller)) ++here.by_rules;
  };
  // Each walk asks for the rules of the calls that it does not confirm; of those, a table has as many as there are different
  // ones.
  descend(40, walk);
  CHECK(known.size() > 2);
  static std::size_t inside = 0;
  descend(10, [] {
    const call_state caller = state_of_caller();
    (void)here.last->walk(memprof::abi_1::process_registry, known, caller);
    known.~frame_rules();
    new (&known) frame_rules;  // which has to learn all anew
    (void)here.last->walk(memprof::abi_1::process_registry, known, caller);
    inside = known.size();
  });
  CHECK(inside == 0);
}

#endif
