#pragma once

#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/exact_count.hpp>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The bytes of an element in each precision.
struct element_bytes {
  std::int64_t fp32 = 4;
  std::int64_t bf16 = 2;
};

/// Fills a `shape_estimate`.
class shape_estimator {
 public:
  explicit shape_estimator(const decoder_shape& shape) : result_{.shape = shape} {}

  /// Adds an operation whose result is kept for each of `count` layers.
  void add(estimate_bucket bucket, std::string_view name, exact_count count, std::vector<std::int64_t> shape,
           exact_count parameters = 0, element_bytes each = {});

  void add_parameters(estimate_bucket bucket, exact_count parameters);

  [[nodiscard]] shape_estimate take() && { return std::move(result_); }

 private:
  shape_estimate result_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
