#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/mlir_operation.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_inputs_registry.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_reader.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_records.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// Assembles lines: the text of an operation, the header of its state, and the four lines of the state, which may be separated by
/// other lines if several processes write.
class tt_log_lines {
 public:
  tt_log_lines(tt_log_sink& sink, std::filesystem::path path) : sink_(sink), path_(std::move(path)) {}

  void line(std::string_view raw) {
    ++status_.lines;
    std::string text = visible_text(raw);
    std::string_view rest = text;
    const mpi_label label = mpi_label_of(rest);
    rest.remove_prefix(label.length);
    rank_state& rank = rank_of(label.rank);
    if (read(rank, rest)) return;
    rank.has_failed = rank.has_failed || is_failure(rest);
    if (rank.header && ++rank.foreign_lines > max_foreign_lines) deliver(rank);
    // Dumps of several ranks' modules may interleave.
    if (!registry_.is_in_module()) registry_rank_ = rank.rank.index;
    if (registry_rank_ == rank.rank.index) registry_.line(rest);
  }

  /// Call after the last line.
  void finish() {
    for (auto& [label, rank] : ranks_) {
      if (status_.damage.empty()) status_.damage = end_of(rank);
      deliver(rank);
      give_up(rank);
    }
  }

  [[nodiscard]] const tt_log_status& status() const noexcept { return status_; }
  [[nodiscard]] const tt_inputs_registry& registry() const noexcept { return registry_; }

 private:
  /// The most other lines that may appear within a state.
  static constexpr unsigned max_foreign_lines = 8;
  static constexpr std::size_t max_ranks = 4096;
  static constexpr std::size_t deepest = 256;

  enum class header_kind : std::uint8_t { operation, program };
  struct rank_state {
    tt_rank rank;
    std::optional<tt_executed_operation> waiting;  ///< awaits its state
    std::optional<header_kind> header;             ///< of an incomplete state
    std::string type;                              ///< of the operation named in the header
    std::uint64_t header_line = 0;
    tt_memory_state state;
    unsigned foreign_lines = 0;
    std::ptrdiff_t usual_views = 1;             ///< lines of the previous state
    std::map<std::size_t, std::int64_t> banks;  ///< by kind of memory, from its first state
    std::vector<std::string> programs;
    std::uint64_t program_line = 0;  ///< where the outermost program begins
    bool has_states = false;
    bool has_failed = false;  ///< since the last operation
    std::set<std::string, std::less<>> cache_misses;
  };

  rank_state& rank_of(std::string_view number) {
    auto found = ranks_.find(number);
    if (found == ranks_.end()) {
      if (ranks_.size() == max_ranks) fail("more than " + std::to_string(max_ranks) + " ranks");
      found = ranks_.try_emplace(std::string{number}).first;
      found->second.rank = {ranks_.size() - 1, std::string{number}};
    }
    return found->second;
  }

  /// Why the end of a rank's lines is missing; empty if it is not.
  [[nodiscard]] std::string end_of(const rank_state& rank) const {
    if (rank.header && views_of(rank.state) < rank.usual_views)
      return "it ends within the memory state that begins in line " + std::to_string(rank.header_line);
    if (!rank.header && rank.waiting && rank.has_states)
      return "it ends before the memory state of '" + rank.waiting->name() + "' in line " + std::to_string(rank.waiting->line);
    if (rank.programs.empty() || rank.has_failed) return {};
    return "it ends within the program '" + rank.programs.front() + "', which begins in line " +
           std::to_string(rank.program_line) + ", with no error that ended it";
  }

  /// Whether the runtime wrote the line.
  [[nodiscard]] bool read(rank_state& rank, std::string_view line) {
    if (const auto text = text_after(line, "Executing operation:"); text && line.find("RuntimeTT") != line.npos) {
      execute(rank, *text);
    } else if (const std::string_view type = word_after(line, "Device memory state before operation "); !type.empty()) {
      begin_state(rank, header_kind::operation, type);
    } else if (line.find("Device memory state before submit") != line.npos ||
               line.find("Device memory state after submit") != line.npos) {
      begin_state(rank, header_kind::program, {});
    } else if (const std::optional<std::size_t> memory = tt_memory_of_line(line)) {
      view(rank, *memory, line);
    } else if (const std::string_view begun = word_after(line, "Starting execution of program:"); !begun.empty()) {
      begin_program(rank, begun);
    } else if (const std::string_view ended = word_after(line, "Finished execution of program:"); !ended.empty()) {
      end_program(rank, ended);
    } else if (const std::string_view missed = word_after(line, "Cache miss or invalid cache for function:"); !missed.empty()) {
      rank.cache_misses.emplace(missed);
    } else if (const std::optional<tt_out_of_memory> failure = parse_tt_out_of_memory(line)) {
      deliver(rank);
      rank.has_failed = true;
      sink_.out_of_memory(rank.rank, *failure, status_.lines);
    } else {
      return false;
    }
    return true;
  }

  void execute(rank_state& rank, std::string_view text) {
    deliver(rank);
    give_up(rank);
    std::optional<mlir_operation> parsed = parse_mlir_operation(text);
    rank.has_failed = false;
    if (!parsed) return note("expected an MLIR operation after 'Executing operation:'");
    rank.waiting = describe(rank, std::move(*parsed));
  }

  [[nodiscard]] tt_executed_operation describe(const rank_state& rank, mlir_operation&& operation) const {
    tt_executed_operation made;
    made.mlir = std::move(operation);
    made.line = status_.lines;
    if (!rank.programs.empty()) made.program = rank.programs.back();
    const auto weights = std::find_if(rank.programs.rbegin(), rank.programs.rend(),
                                      [](const std::string& name) { return name.find("const_eval") != std::string::npos; });
    if (weights != rank.programs.rend()) {
      made.const_eval = *weights;
      made.is_cache_miss = rank.cache_misses.contains(*weights);
    }
    return made;
  }

  void begin_state(rank_state& rank, header_kind kind, std::string_view type) {
    deliver(rank);
    rank.header = kind;
    rank.type = type;
    rank.header_line = status_.lines;
    rank.foreign_lines = 0;
  }

  void view(rank_state& rank, std::size_t memory, std::string_view line) {
    const std::optional<tt_memory_view> found = parse_tt_memory_view(line);
    if (!found) return note("expected MemoryView{numBanks: N, totalBytesPerBank: X MB, ...} with five numbers");
    const std::string name{tt_memory_names[memory]};
    if (const std::string_view fault = impossibility_of(*found); !fault.empty())
      return note("impossible numbers for " + name + ": " + std::string{fault});
    if (!rank.header || rank.state[memory]) return;  // a second one, from a process without a label
    const std::int64_t banks = rank.banks.try_emplace(memory, found->banks).first->second;
    if (found->banks != banks)
      return note(name + " has " + std::to_string(found->banks) + " banks, but had " + std::to_string(banks) + " before");
    rank.state[memory] = *found;
    if (views_of(rank.state) == std::ptrdiff_t{tt_memory_count}) deliver(rank);
  }

  /// The messages of the runtime, Python or the C++ library when an exception ends a program.
  [[nodiscard]] static bool is_failure(std::string_view line) noexcept {
    constexpr std::array<std::string_view, 5> marks{"TT_THROW", "TT_FATAL", "TT_ASSERT", "Traceback (most recent call last)",
                                                    "terminate called"};
    return std::any_of(marks.begin(), marks.end(), [&](std::string_view mark) { return line.find(mark) != line.npos; });
  }

  [[nodiscard]] static std::ptrdiff_t views_of(const tt_memory_state& state) {
    return std::count_if(state.begin(), state.end(), [](const auto& view) { return view.has_value(); });
  }

  /// Hands on the state being read, as far as it is complete.
  void deliver(rank_state& rank) {
    if (!rank.header) return;
    const header_kind kind = *std::exchange(rank.header, std::nullopt);
    const tt_memory_state state = std::exchange(rank.state, {});
    if (views_of(state) == 0) return;
    rank.usual_views = views_of(state);
    ++status_.states;
    rank.has_states = true;
    if (kind == header_kind::program) return sink_.program_state(rank.rank, state);
    tt_executed_operation operation =
        rank.waiting ? std::move(*std::exchange(rank.waiting, std::nullopt)) : describe(rank, mlir_operation{});
    if (operation.mlir.name.empty()) operation.line = rank.header_line;
    operation.type = rank.type;
    sink_.operation(rank.rank, operation, state);
  }

  /// Gives up waiting for the state of an operation.
  void give_up(rank_state& rank) {
    if (!rank.waiting) return;
    const tt_executed_operation operation = std::move(*std::exchange(rank.waiting, std::nullopt));
    if (!is_deallocation(operation.mlir) && !is_get_device(operation.mlir) && status_.without_state++ == 0)
      status_.first_without_state = "'" + operation.name() + "' in line " + std::to_string(operation.line);
    sink_.operation_without_state(rank.rank, operation);
  }

  void begin_program(rank_state& rank, std::string_view name) {
    deliver(rank);
    give_up(rank);
    // Programs do not recurse: a running one of that name was ended by an exception.
    const auto running = std::find(rank.programs.begin(), rank.programs.end(), name);
    if (running != rank.programs.end()) end_from(rank, running);
    if (rank.programs.size() == deepest) return;
    if (rank.programs.empty()) rank.program_line = status_.lines;
    rank.programs.emplace_back(name);
    sink_.begin_program(rank.rank, name);
  }

  void end_program(rank_state& rank, std::string_view name) {
    deliver(rank);
    give_up(rank);
    const auto running = std::find(rank.programs.begin(), rank.programs.end(), name);
    if (running != rank.programs.end()) end_from(rank, running);
  }
  void end_from(rank_state& rank, std::vector<std::string>::iterator first) {
    const std::string name = *first;
    rank.programs.erase(first, rank.programs.end());
    sink_.end_program(rank.rank, name);
  }

  void note(const std::string& what) {
    if (status_.unreadable++ == 0) status_.first_unreadable = "line " + std::to_string(status_.lines) + ": " + what;
  }
  [[noreturn]] void fail(const std::string& what) const {
    raise_about_file("read", path_, "line " + std::to_string(status_.lines) + ": " + what);
  }

  tt_log_sink& sink_;
  std::filesystem::path path_;
  tt_log_status status_;
  tt_inputs_registry registry_;
  std::map<std::string, rank_state, std::less<>> ranks_;
  std::size_t registry_rank_ = 0;  ///< the rank that dumps a module
};

}  // namespace

tt_log_reading read_tt_lines(std::FILE* file, const std::filesystem::path& path, tt_log_sink& sink) {
  tt_log_lines lines{sink, path};
  byte_reader in{file, path};
  std::string line;
  for (std::uint64_t number = 1; next_line(in, line, number); ++number) lines.line(line);
  lines.finish();
  return {lines.status(), lines.registry().inputs(), lines.registry().has_module()};
}

}  // namespace detail

bool is_tt_log(std::FILE* file) {
  constexpr std::array<std::string_view, 3> marks{"RuntimeTTNN", "Device memory state before", "memory state: MemoryView{"};
  constexpr std::size_t most = std::size_t{64} << 20;
  constexpr std::size_t overlap = 32;  // longer than any mark
  std::string part;
  bool is_found = false;
  for (std::size_t seen = 0; seen < most && !is_found;) {
    const std::size_t kept = part.size() < overlap ? part.size() : overlap;
    part.erase(0, part.size() - kept);
    part.resize(kept + (std::size_t{1} << 16));
    const std::size_t got = std::fread(part.data() + kept, 1, part.size() - kept, file);
    part.resize(kept + got);
    seen += got;
    for (const std::string_view mark : marks) is_found = is_found || part.find(mark) != std::string::npos;
    if (got == 0) break;
  }
  std::rewind(file);
  return is_found;
}

}  // namespace memprof::inline MEMPROF_ABI
