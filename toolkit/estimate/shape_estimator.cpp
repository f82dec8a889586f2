#include <memprof/config.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/exact_count.hpp>
#include <memprof/toolkit/estimate/shape_estimator.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

void shape_estimator::add(estimate_bucket bucket, std::string_view name, exact_count count, std::vector<std::int64_t> shape,
                          exact_count parameters, element_bytes each) {
  exact_count elements = count;
  for (const std::int64_t size : shape) elements = elements * size;
  const estimated_bytes total{parameters.value(), (elements * each.fp32).value(), (elements * each.bf16).value()};
  estimated_bytes& sum = result_.buckets[static_cast<std::size_t>(bucket)];
  sum.fp32_bytes = (exact_count{sum.fp32_bytes} + total.fp32_bytes).value();
  sum.bf16_bytes = (exact_count{sum.bf16_bytes} + total.bf16_bytes).value();
  result_.operations.push_back({bucket, std::string{name}, count.value(), std::move(shape), total});
  add_parameters(bucket, parameters);
}

void shape_estimator::add_parameters(estimate_bucket bucket, exact_count parameters) {
  std::int64_t& sum = result_.buckets[static_cast<std::size_t>(bucket)].parameters;
  sum = (parameters + sum).value();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
