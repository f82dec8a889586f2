#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

/// A label of every sample, such as `commit` and `3f2c1e`.
struct pprof_label {
  std::string key;
  std::string value;
};

struct pprof_options {
  std::vector<pprof_label> labels;  ///< besides those that the table gives
  /// The bytes as a gzip member, as made by zlib; null: they are stored.
  std::string (*gzip)(std::string_view) = nullptr;
};

/// Writes a heap profile for pprof, gzipped as on disk. Each operation is a function, the memory space the outermost function.
/// The labels of a sample are `space`, `rank` if the process has one, `segment` and `step` (from 1) of the space's peak as far as
/// they are known, `category` if the table has it, and those of the options: `pprof -sample_index=inuse_space -tagroot=category`.
/// The sums of `peak_space`, `inuse_space` and `alloc_space` over a space are the profile's numbers.
void write_pprof(const stack_table& table, byte_sink_view out, const pprof_options& options = {});

}  // namespace memprof::inline MEMPROF_ABI
