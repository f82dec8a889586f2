#include "models.hpp"
#include "recorded_events.hpp"

#include <memprof/backend/torch_no_dispatch.hpp>

#include <catch2/catch_test_macros.hpp>

TEST_CASE("torch no_dispatch: a step of a small GPT allocates and frees as the real one") {
  const models::options chosen;
  auto& allocations = recorded::cpu_allocations::instance();
  allocations.start();
  models::train(models::gpt(chosen), chosen, {}, [](const char*) {});
  const auto real = recorded::without_scalars(allocations.stop());

  recorded::changes simulated;
  {
    auto capture = memprof::begin_capture<memprof::torch_no_dispatch>();
    recorded::capture_events events{"cpu"};
    models::train(models::gpt(chosen), chosen, {}, [](const char*) {});
    simulated = recorded::without_scalars(events.so_far());
    for (const auto& row : capture.profile().approximations) WARN(row.name << " " << row.cause);
  }
  CHECK(real.size() == simulated.size());
  const auto [left, right] = std::mismatch(real.begin(), real.end(), simulated.begin(), simulated.end());
  CHECK(left - real.begin() == std::ssize(real));
}
