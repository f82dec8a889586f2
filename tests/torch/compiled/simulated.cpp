#include "simulated.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <torch/library.h>
#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

TORCH_LIBRARY(memprof_compiled, library) { library.def("widened(Tensor a) -> Tensor"); }

namespace {

enum class device_action { reserve, release };

/// An allocator that reserves 16 bytes for each block, so that no two of them overlap.
class generous_allocator {
 public:
  /// The default stream and the shared pool.
  struct place {
    std::uint64_t stream = 0;
    std::size_t pool = 0;
    std::pair<std::uint64_t, std::uint64_t> handle{};
  };
  using observer = std::function<void(device_action, std::uint64_t, std::int64_t, const place&, bool)>;
  static constexpr std::int64_t segment = 16;

  void observe(observer told) { observer_ = std::move(told); }
  [[nodiscard]] bool has_room(std::int64_t, char*, std::size_t, std::int64_t&, bool) const noexcept { return true; }
  place allocate(const void* address, std::int64_t, bool) { return tell(device_action::reserve, address); }
  place deallocate(const void* address) { return tell(device_action::release, address); }
  [[nodiscard]] std::uint64_t stream() const noexcept { return 0; }
  [[nodiscard]] bool try_to_wait() noexcept { return true; }
  void add_work() noexcept {}

 private:
  place tell(device_action action, const void* address) {
    observer_(action, reinterpret_cast<std::uint64_t>(address), segment, {}, false);
    return {};
  }

  observer observer_;
};

/// Makes each kind of tensor that a rule can make: scratch memory, a like one with two views of it, and the result.
void widen(memprof::torch_call& call) {
  const at::Tensor like = call.tensor(0);
  const at::Tensor scratch = memprof::torch_call::scratch(like.sizes(), like);
  const at::Tensor same = memprof::torch_call::empty_like(like);
  const at::Tensor view = memprof::torch_call::viewed(memprof::torch_call::transposed(same, 0, 1), {8});
  const std::int64_t factor = memprof::torch_call::is_on_cuda(like) ? 4 : 2;
  call.returns(memprof::torch_call::empty({view.size(0) * factor}, like));
}

}  // namespace

std::vector<simulated_check> simulated_checks() {
  memprof::register_torch_rule("memprof_compiled::widened", widen);
  memprof::set_torch_read_limit(1000);
  memprof::set_torch_selected_fraction(std::nullopt);
  const auto widened =
      c10::Dispatcher::singleton().findSchemaOrThrow("memprof_compiled::widened", "").typed<at::Tensor(const at::Tensor&)>();

  std::vector<simulated_check> found;
  generous_allocator allocator;
  const memprof::torch_device_scope device{allocator};
  auto capture = memprof::begin_capture<memprof::torch_no_dispatch>({.device = {"cuda"}});
  {
    const auto narrow = torch::ones({4, 2});
    const auto wide = widened.call(narrow);
    const memprof::profile profile = capture.profile();
    found.push_back({wide.size(0) == 16, "a rule of the program makes the result"});
    found.push_back({profile.space("cpu").cumulative_current == 32 + 64, "which counts, as does what it is made of"});
    found.push_back({profile.space("cpu").cumulative_peak == 32 + 32 + 32 + 64, "and what the rule holds meanwhile"});
  }
  {
    const auto on_device = torch::ones({4, 2}, torch::kCUDA);
    const auto wide = widened.call(on_device);
    const memprof::profile profile = capture.profile();
    found.push_back({wide.size(0) == 32, "the rule knows the fake device"});
    found.push_back({profile.space("cuda:0").cumulative_current == 32 + 128, "on which tensors count"});
    found.push_back({profile.space("cuda:0").reserved.current == 2 * generous_allocator::segment, "and its allocator follows"});
  }
  {
    const memprof::real_scope scope;
    found.push_back({torch::arange(5).sum().item<int>() == 10, "work in a real_scope is done"});
  }
  {
    const auto mask = torch::rand({100'000}) > 2;
    memprof::assume_selected(mask, 0.25);
    found.push_back({mask.nonzero().size(0) == 25'000, "a mask has the share that the program says"});
  }
  return found;
}
