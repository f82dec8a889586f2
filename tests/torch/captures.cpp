#include "captures.hpp"

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>

#include <algorithm>
#include <iterator>

memprof::capture_guard begin_torch(const memprof::capture_options& options) {
  return memprof::begin_capture<memprof::torch_backend>(options);
}
memprof::capture_guard begin_torch_allocations(const memprof::capture_options& options) {
  return memprof::begin_capture<memprof::torch_allocations>(options);
}
memprof::capture_guard begin_no_dispatch(const memprof::capture_options& options) {
  return memprof::begin_capture<memprof::torch_no_dispatch>(options);
}

namespace {

bool is_read(const memprof::approximated_operation& row) { return row.cause.rfind("read a value", 0) == 0; }

std::vector<memprof::approximated_operation> rows_of(const memprof::profile& profile, bool are_reads) {
  std::vector<memprof::approximated_operation> rows;
  std::copy_if(profile.approximations.begin(), profile.approximations.end(), std::back_inserter(rows),
               [&](const memprof::approximated_operation& row) { return is_read(row) == are_reads; });
  return rows;
}

}  // namespace

std::vector<memprof::approximated_operation> estimates_of(const memprof::profile& profile) { return rows_of(profile, false); }
std::vector<memprof::approximated_operation> reads_of(const memprof::profile& profile) { return rows_of(profile, true); }
