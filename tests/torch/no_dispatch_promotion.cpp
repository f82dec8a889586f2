#include "captures.hpp"
#include "fault_of.hpp"
#include "recorded_events.hpp"

#include <ATen/ScalarOps.h>
#include <torch/torch.h>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// Operators that write their first argument, which a number or a tensor of another type joins.

namespace memprof_tests::torch_no_dispatch_promotion {

namespace {

/// A line of /proc/self/status, in bytes.
std::int64_t of_this_process(std::string_view name) {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name, 0) == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

/// The greatest physical memory that this process has while `run` runs, in bytes more than before; files do not count.
template <class Run>
std::int64_t greatest_growth(Run run) {
  std::ofstream{"/proc/self/clear_refs"} << 5;  // the greatest is the present one
  const std::int64_t before = of_this_process("VmRSS");
  const std::int64_t files = of_this_process("RssFile");
  run();
  return of_this_process("VmHWM") - before - (of_this_process("RssFile") - files);
}

using operation = std::function<void(torch::Tensor&, const torch::Tensor&)>;
struct named_operation {
  const char* name;
  operation run;
  bool takes_numbers = true;    ///< in place of a tensor
  bool is_of_integers = false;  ///< alone
};

/// In place, with another tensor: the CPU computes them element by element, in the type that both are promoted to.
const std::vector<named_operation>& operations() {
  static const std::vector<named_operation> all{
      {"mul_", [](auto& self, const auto& other) { self.mul_(other); }},
      {"add_", [](auto& self, const auto& other) { self.add_(other); }},
      {"add_ with a factor", [](auto& self, const auto& other) { self.add_(other, 2); }},
      {"sub_", [](auto& self, const auto& other) { self.sub_(other); }},
      {"div_", [](auto& self, const auto& other) { self.div_(other); }},
      {"div_ to floor", [](auto& self, const auto& other) { self.div_(other, "floor"); }},
      {"div_ to zero", [](auto& self, const auto& other) { self.div_(other, "trunc"); }},
      {"pow_", [](auto& self, const auto& other) { self.pow_(other); }},
      {"fmod_", [](auto& self, const auto& other) { self.fmod_(other); }},
      {"remainder_", [](auto& self, const auto& other) { self.remainder_(other); }},
      {"atan2_", [](auto& self, const auto& other) { self.atan2_(other); }},
      {"copysign_", [](auto& self, const auto& other) { self.copysign_(other); }},
      {"hypot_", [](auto& self, const auto& other) { self.hypot_(other); }},
      {"xlogy_", [](auto& self, const auto& other) { self.xlogy_(other); }},
      {"clamp_", [](auto& self, const auto& other) { self.clamp_(other, {}); }, false},
      {"clamp_max_", [](auto& self, const auto& other) { self.clamp_max_(other); }, false},
      {"lerp_", [](auto& self, const auto& other) { self.lerp_(other, 0.5); }, false},
      {"addcmul_", [](auto& self, const auto& other) { self.addcmul_(other, other, 0.5); }, false},
      {"addcdiv_", [](auto& self, const auto& other) { self.addcdiv_(other, other, 0.5); }, false},
      {"bitwise_and_", [](auto& self, const auto& other) { self.bitwise_and_(other); }, true, true},
      {"logical_and_", [](auto& self, const auto& other) { self.logical_and_(other); }},
      {"lt_", [](auto& self, const auto& other) { self.lt_(other); }},
      {"eq_", [](auto& self, const auto& other) { self.eq_(other); }},
      {"mul, written to the first", [](auto& self, const auto& other) { at::mul_out(self, self, other); }},
      {"lt, written to the first", [](auto& self, const auto& other) { at::lt_out(self, other, other); }, false},
      {"gcd_", [](auto& self, const auto& other) { self.gcd_(other); }, true, true},
      {"logical_xor, written to the first", [](auto& self, const auto& other) { at::logical_xor_out(self, other, other); },
       false},
  };
  return all;
}

constexpr std::array types{torch::kFloat, torch::kHalf, torch::kBFloat16, torch::kDouble,      torch::kLong,
                           torch::kInt,   torch::kByte, torch::kBool,     torch::kComplexFloat};

/// What joins a tensor.
struct joined {
  std::string name;
  std::function<torch::Tensor()> make;
  bool is_number = false;
};
torch::Tensor number(const c10::Scalar& value) {
  torch::Tensor made = c10::scalar_to_tensor(value);
  made.unsafeGetTensorImpl()->set_wrapped_number(true);
  return made;
}

constexpr std::int64_t side = 272;  // of a matrix above the size up to which kernels run, also with a byte an element

std::vector<joined> all_joined() {
  std::vector<joined> all{
      {"1.5", [] { return number(1.5); }, true},
      {"2", [] { return number(2); }, true},
      {"true", [] { return number(true); }, true},
      {"1i",
       [] {
         return number(c10::complex<double>{0, 1});
       },
       true},
  };
  for (const torch::ScalarType type : types) {
    const std::string name = c10::toString(type);
    all.push_back({name + " without dimensions", [type] { return torch::ones({}, type); }});
    all.push_back({name + " of one element", [type] { return torch::ones({1}, type); }});
    all.push_back({name + " as large", [type] { return torch::ones({side, side}, type); }});
  }
  return all;
}

/// How an operation ended, and what it allocated and freed besides numbers.
struct outcome {
  std::string call;
  std::string fault;
  torch::ScalarType type = torch::kFloat;
  recorded::totals totals;

  [[nodiscard]] bool has_no_kernel() const { return fault.find("not implemented for") != std::string::npos; }
  [[nodiscard]] std::string text() const {
    return fault.empty() ? c10::str(type, ", net ", totals.net, ", peak ", totals.peak, ", sum ", totals.allocated) : fault;
  }
};

/// `restart()` begins the recording of an operation, `so_far()` is what it recorded. Skips what `skip(number of the call)` says.
template <class Skip, class Restart, class SoFar>
std::vector<outcome> outcomes(Skip skip, Restart restart, SoFar so_far) {
  std::vector<outcome> all;
  for (const named_operation& one : operations()) {
    for (const torch::ScalarType type : types) {
      for (const joined& with : all_joined()) {
        if (with.is_number && !one.takes_numbers) continue;
        outcome& found = all.emplace_back();
        if (skip(all.size() - 1)) continue;
        found.call = c10::str(one.name, ": ", type, " with ", with.name);
        const torch::Tensor other = with.make();
        for (const bool is_transposed : {false, true}) {
          torch::Tensor self = torch::ones({side, side}, type);
          if (is_transposed) self = self.t();
          restart();
          found.fault += fault_of([&] { one.run(self, other); });
          found.type = self.scalar_type();
          const recorded::totals now = recorded::totals_of(recorded::without_scalars(so_far()));
          if (!found.fault.empty()) break;
          found.totals = {found.totals.net + now.net, found.totals.peak + now.peak, found.totals.allocated + now.allocated};
        }
      }
    }
  }
  return all;
}

}  // namespace

TEST_CASE("torch no_dispatch: an operation in place with a number takes no memory of the process") {
  constexpr std::int64_t bytes = 256 << 20;
  constexpr std::int64_t most = 16 << 20;  // of libtorch itself, at its first calls
  for (const torch::ScalarType type : {torch::kFloat, torch::kBFloat16}) {
    auto capture = begin_no_dispatch();
    torch::Tensor large = torch::empty({256, bytes / 256 / static_cast<std::int64_t>(c10::elementSize(type))}, type);
    torch::Tensor transposed = large.t();
    for (const named_operation& one : operations()) {
      if (!one.takes_numbers || one.is_of_integers) continue;
      INFO(one.name << " " << c10::toString(type));
      CHECK(greatest_growth([&] { one.run(large, number(0.5)); }) < most);
      CHECK(greatest_growth([&] { one.run(transposed, number(2)); }) < most);
      CHECK(greatest_growth([&] { one.run(large, torch::ones({}, torch::kDouble)); }) < most);
    }
    CHECK(greatest_growth([&] { large.mul_(1 - 0.1 * 0.01).clamp_(0, 1).lerp_(large, 0.5); }) < most);
    CHECK(greatest_growth([&] { transposed.div_(torch::ones({}, torch::kLong)); }) < most);
    CHECK(capture.profile().space("cpu").cumulative_current == bytes);
    CHECK(estimates_of(capture.profile()).empty());
  }
}

TEST_CASE("torch no_dispatch: what is computed in place has the type, the copies and the faults of the kernel") {
  auto& allocations = recorded::cpu_allocations::instance();
  const auto real =
      outcomes([](std::size_t) { return false; }, [&] { allocations.start(); }, [&] { return allocations.so_far(); });
  (void)allocations.stop();
  auto capture = begin_no_dispatch();
  recorded::capture_events events{"cpu"};
  const auto simulated = outcomes([&](std::size_t index) { return real[index].has_no_kernel(); }, [&] { events.restart(); },
                                  [&] { return events.so_far(); });
  REQUIRE(simulated.size() == real.size());
  std::size_t compared = 0;
  std::size_t refused = 0;
  for (std::size_t index = 0; index < real.size(); ++index) {
    if (real[index].has_no_kernel()) continue;
    ++compared;
    refused += real[index].fault.empty() ? 0 : 1;
    INFO(real[index].call);
    CHECK(simulated[index].text() == real[index].text());
  }
  CHECK(compared > 4000);
  CHECK(refused > 1000);
  CHECK(estimates_of(capture.profile()).empty());
}

}  // namespace memprof_tests::torch_no_dispatch_promotion
