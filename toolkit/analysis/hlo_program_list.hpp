#pragma once

#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The programs in XLA profiles of several workers. Needs protozero.

namespace memprof::inline MEMPROF_ABI {

/// A program over all workers.
struct hlo_listed_program {
  std::string name;
  std::int64_t workers = 0;
  std::uint64_t runs = 0;
  heap_simulation greatest;  ///< of the worker with the greatest peak
};

/// Collects the programs of workers, and what each needs of one memory space of XLA.
class hlo_program_list {
 public:
  explicit hlo_program_list(std::int64_t space) : space_(space) {}

  /// Adds the programs of a worker. Returns a sentence about each that cannot be read.
  [[nodiscard]] std::vector<std::string> add(const xplane_file& worker);
  /// Those with the greatest peak first.
  [[nodiscard]] std::vector<hlo_listed_program> programs() const;
  /// The memory spaces that the programs use, in the order in which they were found.
  [[nodiscard]] const std::vector<std::int64_t>& spaces() const noexcept { return spaces_; }

 private:
  std::int64_t space_;
  std::vector<hlo_listed_program> programs_;
  std::map<std::string, std::size_t> index_of_;
  std::vector<std::int64_t> spaces_;
};

/// The program of that name (`is_named`) that ran first on the worker's first TPU core, else the first in the file.
struct found_program {
  const xplane_program* program = nullptr;  ///< null if there is none
  std::size_t candidates = 0;               ///< programs of that name
};
[[nodiscard]] found_program find_program(const xplane_file& worker, std::string_view name);

}  // namespace memprof::inline MEMPROF_ABI
