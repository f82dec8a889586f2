#include "captures.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/memprof.hpp>

#include <torch/csrc/profiler/stubs/base.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace memprof_tests::torch_device_times {

namespace {

namespace profiler = torch::profiler::impl;

/// What libtorch's CUDA library registers for its profiler, with a device that takes one microsecond for what is between two
/// events.
struct stand_in_device final : profiler::ProfilerStubs {
  // Which of the two there is depends on the version. NOLINTBEGIN(modernize-use-override)
  void record(c10::DeviceIndex*, profiler::ProfilerVoidEventStub* event, std::int64_t*) const { put(event); }
  void record(int*, profiler::ProfilerVoidEventStub* event, std::int64_t*) const { put(event); }
  // NOLINTEND(modernize-use-override)
  float elapsed(const profiler::ProfilerVoidEventStub* first, const profiler::ProfilerVoidEventStub* second) const override {
    if (is_refusing) throw std::runtime_error{"the event was never recorded"};
    return static_cast<float>(*std::static_pointer_cast<std::int64_t>(*second) - *std::static_pointer_cast<std::int64_t>(*first));
  }
  static void put(profiler::ProfilerVoidEventStub* event) {
    if (is_absent) throw std::runtime_error{"no device"};
    *event = std::make_shared<std::int64_t>(++events);
  }
  void mark(const char*) const override {}
  void rangePush(const char*) const override {}
  void rangePop() const override {}
  [[nodiscard]] bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)>) const override {}
  void synchronize() const override {}

  static inline std::int64_t events = 0;
  static inline bool is_absent = false;
  static inline bool is_refusing = false;
};

/// Registers it in place of what there was, until the end of the scope.
class with_device {
 public:
  explicit with_device(bool is_absent = false, bool is_refusing = false)
      : earlier_(const_cast<profiler::ProfilerStubs*>(profiler::cudaStubs())) {
    stand_in_device::is_absent = is_absent;
    stand_in_device::is_refusing = is_refusing;
    profiler::registerCUDAMethods(&device_);
  }
  with_device(const with_device&) = delete;
  with_device& operator=(const with_device&) = delete;
  ~with_device() { profiler::registerCUDAMethods(earlier_); }

 private:
  stand_in_device device_;
  profiler::ProfilerStubs* earlier_;
};

std::optional<memprof::pytorch_operation> find(const memprof::profile& profile, std::string_view name) {
  for (const memprof::pytorch_operation& row : operators_of(profile)) {
    if (row.name == name) return row;
  }
  return std::nullopt;
}

/// The profile of two products of matrices. Within `aten::t` there is `aten::transpose`, and within that `aten::as_strided`.
memprof::profile counted() {
  const at::Tensor input = at::ones({2, 8});
  const at::Tensor weight = at::ones({4, 8});
  auto capture = begin_torch();
  {
    auto ops = memprof::track_pytorch_ops();
    for (int count = 0; count < 2; ++count) (void)at::mm(input, weight.t());
  }
  capture.end();
  return capture.profile();
}

}  // namespace

TEST_CASE("pytorch operations: the time on a device lies between an event before and one after each call") {
  const with_device device;
  const memprof::profile profile = counted();
  const auto time_of = [&](const char* name) {
    const std::optional<memprof::pytorch_operation> row = find(profile, name);
    return !row.has_value() || row->count != 2 ? 0 : row->device_time_ns / 2;
  };
  CHECK(time_of("aten::as_strided") == 1000);  // nothing within: its own two events follow each other
  CHECK(time_of("aten::transpose") == 3000);   // inclusive: those of as_strided lie between its own
  CHECK(time_of("aten::t") == 5000);
  CHECK_FALSE(find(profile, "(calls above without a device time)").has_value());
}

TEST_CASE("pytorch operations: times that the device refuses are counted as missing") {
  const with_device device{false, true};
  const memprof::profile profile = counted();
  const std::optional<memprof::pytorch_operation> product = find(profile, "aten::mm");
  REQUIRE(product.has_value());
  CHECK(product->count == 2);
  CHECK(product->device_time_ns == 0);
  const std::optional<memprof::pytorch_operation> untimed = find(profile, "(calls above without a device time)");
  REQUIRE(untimed.has_value());
  std::int64_t calls = 0;
  for (const memprof::pytorch_operation& row : operators_of(profile)) {
    if (row != *untimed) calls += row.count;
  }
  CHECK(untimed->count == calls);
}

TEST_CASE("pytorch operations: times that an earlier capture did not ask for are not missing in the next") {
  const with_device device{false, true};
  {
    auto earlier = begin_torch();
    auto ops = memprof::track_pytorch_ops();
    (void)at::ones({2});
    earlier.release();
  }
  memprof::discard_capture();
  auto capture = begin_torch();
  CHECK(operators_of(capture.profile()).empty());
}

TEST_CASE("pytorch operations: a CUDA build without a device has no times, and goes on") {
  const with_device device{true};
  const memprof::profile profile = counted();
  REQUIRE(find(profile, "aten::mm").has_value());
  CHECK(find(profile, "aten::mm")->device_time_ns == 0);
  CHECK_FALSE(find(profile, "(calls above without a device time)").has_value());
}

}  // namespace memprof_tests::torch_device_times
