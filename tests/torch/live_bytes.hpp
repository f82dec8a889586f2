#pragma once

#include <memprof/memprof.hpp>

#include <cstdint>
#include <map>
#include <string>

/// What is live in the space `cpu` now: the peak of a segment without events is at its beginning.
inline memprof::live_set live_set_now(memprof::capture_guard& capture) {
  capture.snapshot("BEFORE");
  return capture.profile().space("cpu").segments.back().live_at_peak;
}

/// The same by category, without those that hold nothing.
inline std::map<std::string, std::int64_t> live_by_category(memprof::capture_guard& capture) {
  std::map<std::string, std::int64_t> result;
  for (const memprof::owned_bytes& row : live_set_now(capture).by_category) {
    if (row.bytes != 0) result[row.owner] = row.bytes;
  }
  return result;
}

/// Live bytes of the space `cpu` now; 0 before its first event.
inline std::int64_t live_bytes_now(const memprof::capture_guard& capture) {
  for (const memprof::space_profile& space : capture.profile().spaces) {
    if (space.name == "cpu") return space.cumulative_current;
  }
  return 0;
}
