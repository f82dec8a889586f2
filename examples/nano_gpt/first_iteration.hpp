#pragma once

#include <nano_gpt/options.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/write_json.hpp>

namespace nano_gpt {

/// What tt-train does with `--track_memory` after the first optimizer step: ends the capture, whose last segment has this name,
/// prints it as its memory tracker does, and discards it, so that the training goes on without one.
inline void print_first_iteration(const options& options) {
  memprof::end_capture("FIRST_ITERATION_COMPLETE");
  memprof::print_memory_usage({.format = memprof::text_format::tracker});
  if (options.json) memprof::write_json(memprof::current_profile(), *options.json);
  memprof::discard_capture();
}

}  // namespace nano_gpt
