#include "captures.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>

memprof::capture_guard begin_torch(const memprof::capture_options& options) {
  return memprof::begin_capture<memprof::torch_backend>(options);
}
memprof::capture_guard begin_torch_allocations(const memprof::capture_options& options) {
  return memprof::begin_capture<memprof::torch_allocations>(options);
}
memprof::capture_guard begin_no_dispatch(const memprof::capture_options& options) {
  return memprof::begin_capture<memprof::torch_no_dispatch>(options);
}

memprof::vector<memprof::approximated_operation> estimates_of(const memprof::profile& profile) {
  return memprof::rows_of<memprof::approximated_operation>(profile.facts);
}
memprof::vector<memprof::assumed_size> sizes_of(const memprof::profile& profile) {
  return memprof::rows_of<memprof::assumed_size>(profile.facts);
}
memprof::vector<memprof::unknown_read> reads_of(const memprof::profile& profile) {
  return memprof::rows_of<memprof::unknown_read>(profile.facts);
}
memprof::vector<memprof::pytorch_operation> operators_of(const memprof::profile& profile) {
  return memprof::rows_of<memprof::pytorch_operation>(profile.facts);
}
