// many_runs FOLDER: makes 1,000 training runs of 4 ranks each and writes them as tables, as
//   memprof export run.memtrace --format csv --run NAME --label commit=ID -o FOLDER/NAME/rank_N
// does with recordings. One commit takes more memory than its predecessors, and two ranks more than their peers:
// outliers.sql finds them.
#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/tables/tables.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/trace.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <random>
#include <string>

namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr unsigned runs = 1000;
constexpr unsigned ranks = 4;
constexpr unsigned runs_per_commit = 25;

/// What the query must find.
constexpr unsigned regressed_commit = 23;  ///< and all later ones
constexpr std::array<std::array<unsigned, 2>, 2> odd_ranks{{{617, 2}, {38, 0}}};

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

/// Two training steps: parameters, and activations that vary by one percent.
memprof::profile train(const process& of) {
  memprof::capture_info info;
  info.begin_unix_ns = 1'760'000'000'000'000'000 + std::int64_t{of.run} * 600'000'000'000;
  info.process.host = numbered("node%02u", of.run % 16);
  info.process.rank = info.process.local_rank = of.rank;
  info.process.world_size = ranks;
  memprof::trace trace;
  memprof::trace_writer writer{trace, info};
  const memprof::space_id gpu = writer.space("cuda:0", std::int64_t{80} << 30);

  std::mt19937 random{of.run * ranks + of.rank};
  std::uint64_t next = 0x7f00'0000'0000;
  const auto allocate = [&](std::uint64_t bytes, memprof::category category) {
    writer.allocate(gpu, memprof::block_address{next}, bytes, category);
    next += bytes;
    return next - bytes;
  };
  {
    const auto model = writer.begin_operation("model");
    (void)allocate(16'000 * mib, memprof::category::parameter);
    if (of.rank == 0) (void)allocate(2'000 * mib, memprof::category::parameter);  // the first stage has the embedding
    writer.end_operation(model);
    writer.end_segment("MODEL_CREATION");
  }
  std::uint64_t activations = 20'000 * mib;
  if (of.commit() >= regressed_commit) activations += 2'500 * mib;
  if (of.is_odd()) activations += 6'000 * mib;
  for (int step = 0; step < 2; ++step) {
    const auto forward = writer.begin_operation("forward");
    const std::uint64_t address = allocate(activations + random() % 200 * mib, memprof::category::activation);
    writer.end_operation(forward);
    writer.end_segment("FORWARD");
    writer.deallocate(gpu, memprof::block_address{address});
    writer.end_segment("BACKWARD");
  }
  writer.finish("");
  return memprof::profile_of(trace);
}

/// Writes one table by calling `write(table_writer)`.
template <class Write>
void write_table(const std::filesystem::path& path, Write&& write) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) throw memprof::error{"cannot write '" + path.string() + "'"};
  memprof::file_sink sink{file};
  memprof::table_writer rows{sink, memprof::table_format::csv};
  write(rows);
  if (std::fclose(file) != 0 || !sink.is_good()) throw memprof::error{"cannot write all of '" + path.string() + "'"};
}

void write_tables(const std::filesystem::path& folder) {
  for (unsigned run = 0; run < runs; ++run) {
    const std::string name = numbered("run_%04u", run);
    for (unsigned rank = 0; rank < ranks; ++rank) {
      const process of{run, rank};
      const memprof::profile profile = train(of);
      const std::filesystem::path tables = folder / name / numbered("rank_%u", rank);
      std::filesystem::create_directories(tables);
      write_table(tables / "runs.csv", [&](auto& rows) { memprof::write_runs_table(profile, name, rows); });
      write_table(tables / "labels.csv", [&](auto& rows) {
        memprof::write_labels_table(profile, name, {{"commit", id_of(of.commit())}}, rows);
      });
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: many_runs FOLDER\n");
    return 2;
  }
  try {
    write_tables(arguments[1]);
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "many_runs: %s\n", fault.what());
    return 1;
  }
}
