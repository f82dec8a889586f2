#include <memprof/backend/torch/capture/forward_scopes.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <memory>

namespace memprof_tests::torch_forward_scopes {

using memprof::detail::forward_scopes;

TEST_CASE("torch forward scopes: each thread's operators are distinguished by their sequence numbers") {
  const auto scopes = std::make_unique<forward_scopes>();
  for (std::uint64_t thread = 1; thread <= 4; ++thread) {
    for (std::int64_t sequence = 0; sequence < 1000; ++sequence) {
      scopes->store(thread, sequence, static_cast<memprof::extend::label>(1000 * thread + static_cast<std::uint64_t>(sequence)));
    }
  }
  for (std::uint64_t thread = 1; thread <= 4; ++thread) {
    for (std::int64_t sequence = 0; sequence < 1000; ++sequence) {
      REQUIRE(scopes->find(thread, sequence) == 1000 * thread + static_cast<std::uint64_t>(sequence));
    }
  }
  CHECK(scopes->find(5, 3) == 0);
  CHECK(scopes->find(1, 1000) == 0);
}

TEST_CASE("torch forward scopes: the last 65,536 operators are known, and older ones have none rather than another's") {
  const auto scopes = std::make_unique<forward_scopes>();
  constexpr std::int64_t kept = 65536;
  for (std::int64_t sequence = 0; sequence < kept + 10; ++sequence) {
    scopes->store(1, sequence, static_cast<memprof::extend::label>(sequence + 1));
  }
  CHECK(scopes->find(1, 9) == 0);
  CHECK(scopes->find(1, 10) == 11);
  CHECK(scopes->find(1, kept + 9) == kept + 10);
}

TEST_CASE("torch forward scopes: an operator outside of any scope forgets the one before it with the same number") {
  const auto scopes = std::make_unique<forward_scopes>();
  scopes->store(1, 7, 3);
  scopes->store(1, 7, 0);
  CHECK(scopes->find(1, 7) == 0);
  scopes->store(1, 7, 1U << 24);  // more names than an entry has room for
  CHECK(scopes->find(1, 7) == 0);
}

}  // namespace memprof_tests::torch_forward_scopes
