// many_runs FOLDER [RUNS]: makes 1,000 training runs of 4 ranks each, or RUNS, and writes their tables, a file for each thousand
// runs, with the rows that
//   memprof export run.memtrace --format parquet --run NAME --label commit=ID -o OUT
// writes for a recording. Some commits take more memory than their predecessors, and some ranks more than their peers:
// outliers.sql finds them.
#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/tables/tables.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <random>
#include <string>
#include <system_error>

namespace {

constexpr std::int64_t mib = 1 << 20;
constexpr unsigned runs_per_file = 1000;
constexpr unsigned most_runs = 1'000'000;
constexpr unsigned ranks = 4;
constexpr unsigned runs_per_commit = 25;

/// What the query must find.
constexpr std::array<unsigned, 2> regressed_commits{23, 3000};  ///< and all later ones
constexpr std::array<std::array<unsigned, 2>, 3> odd_ranks{{{617, 2}, {38, 0}, {73'421, 1}}};

struct process {
  unsigned run;
  unsigned rank;

  [[nodiscard]] unsigned commit() const { return run / runs_per_commit; }
  [[nodiscard]] bool is_odd() const {
    for (const auto& [odd_run, odd_rank] : odd_ranks) {
      if (run == odd_run && rank == odd_rank) return true;
    }
    return false;
  }
};

std::string numbered(const char* format, unsigned number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

/// The id of a commit: eight hexadecimal digits, in some ids without any letter.
std::string id_of(unsigned commit) { return numbered("%08x", (commit + 1) * 2'654'435'761U); }

/// The profile of two training steps: parameters, and activations that vary by one percent. Its numbers are filled in, as those
/// of a hundred thousand recordings would take an hour to make.
memprof::profile train(const process& of) {
  std::int64_t parameters = 16'000 * mib;
  if (of.rank == 0) parameters += 2'000 * mib;  // the first stage has the embedding
  std::int64_t activations = 20'000 * mib;
  for (const unsigned commit : regressed_commits) {
    if (of.commit() >= commit) activations += 2'500 * mib;
  }
  if (of.is_odd()) activations += 6'000 * mib;
  std::mt19937 random{of.run * ranks + of.rank};
  const auto varied = [&] { return activations + static_cast<std::int64_t>(random() % 200) * mib; };
  const std::array<std::int64_t, 2> steps{varied(), varied()};

  memprof::profile made;
  made.library_version = memprof::version_string;
  made.exact = made.complete = true;
  made.begin_unix_ns = 1'760'000'000'000'000'000 + std::int64_t{of.run} * 600'000'000'000;
  made.process.host = numbered("node%02u", of.run % 16);
  made.process.rank = made.process.local_rank = of.rank;
  made.process.world_size = ranks;
  memprof::space_profile& gpu = made.spaces.emplace_back();
  gpu.name = "cuda:0";
  gpu.capacity = std::int64_t{80} << 30;
  gpu.cumulative_peak = parameters + std::max(steps[0], steps[1]);
  gpu.cumulative_current = parameters;
  gpu.allocations = parameters + steps[0] + steps[1];
  gpu.deallocations = steps[0] + steps[1];
  gpu.allocation_count = of.rank == 0 ? 4 : 3;
  gpu.deallocation_count = 2;
  gpu.peak_operation = "forward";
  return made;
}

/// Writes one table by calling `write(table_writer)`.
template <class Write>
void write_table(const std::filesystem::path& path, Write&& write) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw memprof::error{"cannot write '" + path.string() + "'"};
  memprof::file_sink sink{file};
  memprof::table_writer rows{sink, memprof::table_format::parquet};
  write(rows);
  rows.finish();
  if (std::fclose(file) != 0 || !sink.is_good()) throw memprof::error{"cannot write all of '" + path.string() + "'"};
}

void write_tables(const std::filesystem::path& folder, unsigned runs) {
  for (unsigned first = 0; first < runs; first += runs_per_file) {
    const std::filesystem::path tables = folder / numbered("part_%04u", first / runs_per_file);
    std::filesystem::create_directories(tables);
    write_table(tables / "runs.parquet", [&](auto& totals) {
      write_table(tables / "labels.parquet", [&](auto& labels) {
        for (unsigned run = first; run < std::min(runs, first + runs_per_file); ++run) {
          const std::string name = numbered("run_%06u", run);
          for (unsigned rank = 0; rank < ranks; ++rank) {
            const process of{run, rank};
            const memprof::profile profile = train(of);
            memprof::write_runs_table(profile, name, totals);
            memprof::write_labels_table(profile, name, {{"commit", id_of(of.commit())}}, labels);
          }
        }
      });
    });
  }
}

/// The number of runs, or 0 if it is none.
unsigned number_of(const std::string& text) {
  unsigned runs = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), runs);
  return fault == std::errc{} && end == text.data() + text.size() && runs <= most_runs ? runs : 0;
}

}  // namespace

int main(int count, char** arguments) {
  const unsigned runs = count == 3 ? number_of(arguments[2]) : 1000;
  if (count < 2 || count > 3 || runs == 0 || *arguments[1] == '-') {
    std::fprintf(stderr, "usage: many_runs FOLDER [RUNS], of at most %u runs\n", most_runs);
    return 2;
  }
  try {
    write_tables(arguments[1], runs);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "many_runs: %s\n", fault.what());
    return 1;
  }
}
