#include "captures.hpp"
#include "live_bytes.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace memprof_tests::torch_foreign_allocators {

namespace {

/// Puts an allocator in the place of libtorch's until the end of the scope, as a profiler or a pool of the program might.
class foreign_place {
 public:
  explicit foreign_place(c10::Allocator& foreign) : before_(c10::GetAllocator(c10::kCPU)) {
    REQUIRE(memprof::detail::set_allocator(c10::kCPU, foreign));
  }
  foreign_place(const foreign_place&) = delete;
  foreign_place& operator=(const foreign_place&) = delete;
  ~foreign_place() { (void)memprof::detail::set_allocator(c10::kCPU, *before_); }

 private:
  c10::Allocator* before_;
};

/// An allocator for every version: in older ones `allocate` is const, and there is no `copy_data`.
struct any_allocator : c10::Allocator {
  virtual c10::DataPtr make(std::size_t bytes) = 0;

  c10::DataPtr allocate(std::size_t bytes) const { return const_cast<any_allocator*>(this)->make(bytes); }
  c10::DataPtr allocate(std::size_t bytes) { return make(bytes); }
  void copy_data(void* destination, const void* source, std::size_t bytes) const { std::memcpy(destination, source, bytes); }
};

/// Knows its blocks by a context and not by their address.
struct context_allocator final : any_allocator {
  struct context {
    void* address;
    int* live;
  };
  int live = 0;

  c10::DataPtr make(std::size_t bytes) override {
    void* const address = std::malloc(bytes + 1);
    ++live;
    return {address, new context{address, &live}, &free_block, c10::Device{c10::kCPU}};
  }
  static void free_block(void* given) {
    auto* const block = static_cast<context*>(given);
    --*block->live;
    std::free(block->address);
    delete block;
  }
};

/// Has another deleter than libtorch's own allocator.
struct pool_allocator final : any_allocator {
  c10::DataPtr make(std::size_t bytes) override {
    void* const address = std::malloc(bytes + 1);
    return {address, address, &std::free, c10::Device{c10::kCPU}};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
};

/// Forwards to the one that was there before.
struct forwarding_allocator final : any_allocator {
  c10::Allocator* below = c10::GetAllocator(c10::kCPU);
  int calls = 0;

  c10::DataPtr make(std::size_t bytes) override {
    ++calls;
    return below->allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return below->raw_deleter(); }
};

}  // namespace

TEST_CASE("torch foreign allocators: one that keeps contexts is recorded, and gets its blocks back") {
  context_allocator foreign;
  {
    const foreign_place place{foreign};
    at::Tensor outliving;
    {
      auto capture = begin_torch_allocations();
      const at::Tensor tensor = at::ones({10});
      outliving = at::ones({5});
      CHECK(foreign.live == 2);
      CHECK(live_bytes_now(capture) == 60);
      CHECK(tensor.sum().item<float>() == 10.0F);
    }
    CHECK(foreign.live == 1);
  }
  CHECK(foreign.live == 0);
}

TEST_CASE("torch foreign allocators: one that replaced libtorch's after a capture is refused with what to do") {
  { auto first = begin_torch_allocations(); }
  pool_allocator pool;
  const foreign_place place{pool};
  CHECK_THROWS_WITH(begin_torch(), Catch::Matchers::ContainsSubstring("set it before the first capture"));
  CHECK(at::ones({10}).sum().item<float>() == 10.0F);  // the program goes on
  CHECK(c10::GetAllocator(c10::kCPU) == &pool);
}

TEST_CASE("torch foreign allocators: one that was put before memprof's during a capture may stay there") {
  auto first = begin_torch_allocations();
  forwarding_allocator above;
  {
    const foreign_place place{above};
    const at::Tensor seen = at::empty({10});
    CHECK(live_bytes_now(first) == 40);
    first.end();
    CHECK(c10::GetAllocator(c10::kCPU) == &above);

    auto second = begin_torch_allocations();
    CHECK(c10::GetAllocator(c10::kCPU) == &above);
    const at::Tensor counted_once = at::empty({5});
    CHECK(live_bytes_now(second) == 20);
    second.end();
  }
  auto third = begin_torch_allocations();
  const at::Tensor after = at::empty({7});
  CHECK(live_bytes_now(third) == 28);
  third.end();
}

}  // namespace memprof_tests::torch_foreign_allocators
