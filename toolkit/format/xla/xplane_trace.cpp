#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/toolkit/format/xla/heap_replay.hpp>
#include <memprof/toolkit/format/xla/heap_simulation.hpp>
#include <memprof/toolkit/format/xla/hlo_memory.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>
#include <memprof/toolkit/format/xla/xplane_trace.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/trace_writer.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

std::string xla_space_name(std::int64_t space, bool is_tpu) {
  constexpr std::array<std::string_view, 7> of_tpu{"hbm", "vmem", "sflag", "cmem", "smem", "host", "sparse_core"};
  if (is_tpu && space >= 0 && space < 7) return std::string{of_tpu[static_cast<std::size_t>(space)]};
  return space == 0 ? "device" : "device_space_" + std::to_string(space);
}

bool is_named(const xplane_program& program, std::string_view wanted) noexcept {
  if (wanted.ends_with('(')) wanted.remove_suffix(1);
  const std::string_view name = program.name;
  return name == wanted || name.substr(0, name.rfind('(')) == wanted;
}

namespace detail {

std::vector<std::string_view> path_of_op_name(std::string_view name) {
  constexpr std::size_t deepest = 64;
  std::vector<std::string_view> path;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t index = 0; index <= name.size(); ++index) {
    const char character = index == name.size() ? '/' : name[index];
    if (character == '(' || character == '[') ++depth;
    if ((character == ')' || character == ']') && depth > 0) --depth;
    if (character != '/' || (depth > 0 && index < name.size())) continue;
    if (index > begin && path.size() < deepest) path.push_back(name.substr(begin, index - begin));
    begin = index + 1;
  }
  return path;
}

}  // namespace detail

namespace {

/// A program in a memory space, in bytes: a row of the table `xla_programs`.
struct xla_program_fact {
  std::string program;
  std::string space;
  std::int64_t peak = 0;
  std::int64_t unpadded_peak = 0;
  std::int64_t parameters = 0;
  std::int64_t outputs = 0;
  std::int64_t temporaries = 0;  ///< at the peak
  std::int64_t all_allocations = 0;
  std::int64_t thread_local_bytes = 0;  ///< in none of the others
  std::int64_t runs = 0;                ///< on all cores of a TPU; 0: not in the profile

  static constexpr std::string_view table = "xla_programs";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("program", row.program);
    visit("space", row.space);
    visit("peak", row.peak);
    visit("unpadded_peak", row.unpadded_peak);
    visit("parameters", row.parameters);
    visit("outputs", row.outputs);
    visit("temporaries", row.temporaries);
    visit("all_allocations", row.all_allocations);
    visit("thread_local", row.thread_local_bytes);
    visit("runs", row.runs);
  }
};

/// A block that is live at a program's peak: a row of the table `xla_live_at_peak`.
struct xla_live_block_fact {
  std::string program;
  std::string space;
  std::string instruction;
  std::string op_name;
  std::string opcode;
  std::string source;  ///< "file:line"
  std::string shape;
  std::string group;
  std::int64_t bytes = 0;
  std::int64_t unpadded_bytes = 0;

  static constexpr std::string_view table = "xla_live_at_peak";
  template <class Row, class Visitor>
  static void columns(Row& row, Visitor&& visit) {
    visit("program", row.program);
    visit("space", row.space);
    visit("instruction", row.instruction);
    visit("op_name", row.op_name);
    visit("opcode", row.opcode);
    visit("source", row.source);
    visit("shape", row.shape);
    visit("group", row.group);
    visit("bytes", row.bytes);
    visit("unpadded_bytes", row.unpadded_bytes);
  }
};

/// Writes the effect of a program on its memory spaces to a trace. Each event of the heap simulation counts as a
/// microsecond.
class xla_program_writer {
 public:
  xla_program_writer(const hlo_memory& memory, extend::trace_writer& writer, const hlo_categorizer& categorize,
                     std::int64_t& now_us)
      : memory_(memory), writer_(writer), categorize_(categorize), now_us_(now_us) {}

  void write_space(std::int64_t number, const std::string& name, const heap_simulation& simulated) {
    space_ = writer_.space(name);
    live_.clear();
    reserve(number);
    for (const hlo_live_buffer& each : simulated.live_at_peak) {
      if (each.is_indefinite) allocate(each.owner, each.owner, allocation_of(each.owner).bytes);
    }
    if (simulated.trace != hlo_none) {
      const std::vector<hlo_heap_event>& events = memory_.program().traces[simulated.trace];
      detail::heap_replay{memory_.program(), *this}.run(events, events.size());
    }
    writer_.at(++now_us_ * 1000);
    release();
  }

  // --- called by `heap_replay` --------------------------------------------------------------------------------------

  void allocated(std::size_t, std::uint32_t owner, std::uint32_t shown) {
    writer_.at(++now_us_ * 1000);
    allocate(owner, shown, memory_.program().buffers[owner].bytes);
  }
  void freed(std::size_t, std::uint32_t owner) {
    writer_.at(++now_us_ * 1000);
    const auto found = live_.find(owner);
    if (found == live_.end()) return;
    const std::uint64_t address = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) live_.erase(found);
    taken_.erase(address);
    writer_.deallocate(space_, extend::block_address{address}, static_cast<std::size_t>(memory_.program().buffers[owner].bytes));
  }

 private:
  [[nodiscard]] const hlo_allocation& allocation_of(std::uint32_t buffer) const {
    return memory_.program().allocations[memory_.program().buffers[buffer].allocation];
  }

  /// Memory of threads is no part of what the program takes from the device.
  [[nodiscard]] static bool is_taken(const hlo_allocation& allocation) noexcept {
    return allocation.bytes != 0 && !allocation.is_thread_local;
  }

  /// Assigns consecutive addresses to the allocations of a space, since the program has none.
  void reserve(std::int64_t number) {
    constexpr std::uint64_t first_address = 0x10000;
    constexpr std::uint64_t alignment = 256;
    end_ = first_address;
    base_of_.assign(memory_.program().allocations.size(), 0);
    for (std::size_t index = 0; index < base_of_.size(); ++index) {
      const hlo_allocation& allocation = memory_.program().allocations[index];
      if (allocation.space != number) continue;
      const auto bytes = static_cast<std::uint64_t>(allocation.bytes);
      base_of_[index] = end_;
      end_ += (bytes + alignment) / alignment * alignment;
      if (is_taken(allocation)) writer_.put_event({0, base_of_[index], bytes, 0, extend::event_kind::reserve, space_.value, 0});
    }
  }

  void release() {
    std::vector<std::uint64_t> left{taken_.begin(), taken_.end()};
    std::sort(left.begin(), left.end());
    for (const std::uint64_t address : left) writer_.deallocate(space_, extend::block_address{address});
    taken_.clear();
    for (std::size_t index = 0; index < base_of_.size(); ++index) {
      const hlo_allocation& allocation = memory_.program().allocations[index];
      const auto bytes = static_cast<std::uint64_t>(allocation.bytes);
      if (base_of_[index] != 0 && is_taken(allocation))
        writer_.put_event({0, base_of_[index], bytes, 0, extend::event_kind::release, space_.value, 0});
    }
  }

  void allocate(std::uint32_t owner, std::uint32_t shown, std::int64_t bytes) {
    const hlo_buffer& buffer = memory_.program().buffers[owner];
    std::uint64_t address = base_of_[buffer.allocation] + static_cast<std::uint64_t>(buffer.offset);
    // Empty values share addresses with others.
    while (!taken_.insert(address).second) address = end_++;
    live_[owner].push_back(address);
    const hlo_block block = memory_.block(shown);
    const category kind = categorize_(block.group, block.op_name);
    std::vector<extend::trace_writer::open_operation_type> open;
    for (const std::string& operation : operations_of(block)) open.push_back(writer_.begin_operation(operation));
    writer_.allocate(space_, extend::block_address{address}, static_cast<std::size_t>(bytes), kind);
    const bool is_argument = block.group == hlo_group::parameter && !block.op_name.empty();
    writer_.annotate(extend::block_address{address},
                     {is_argument ? block.op_name : block.instruction, block.shape, block.dtype, kind});
    while (!open.empty()) {
      writer_.end_operation(open.back());
      open.pop_back();
    }
  }

  /// The path of the op name; the innermost name has its line. Blocks without an operation are under the name of their group.
  [[nodiscard]] static std::vector<std::string> operations_of(const hlo_block& block) {
    if (block.group == hlo_group::parameter || block.op_name.empty())
      return {'(' + std::string{block.group == hlo_group::temporary ? block.opcode : to_string(block.group)} + ')'};
    std::vector<std::string> operations;
    for (const std::string_view part : detail::path_of_op_name(block.op_name)) operations.emplace_back(part);
    if (!operations.empty() && !block.source_file.empty())
      operations.back() +=
          " (" + std::filesystem::path{block.source_file}.filename().string() + ':' + std::to_string(block.source_line) + ')';
    return operations;
  }

  const hlo_memory& memory_;
  extend::trace_writer& writer_;
  const hlo_categorizer& categorize_;
  std::int64_t& now_us_;
  extend::space_id space_;
  std::uint64_t end_ = 0;
  std::vector<std::uint64_t> base_of_;  ///< by allocation; 0: in another space
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> live_;
  std::unordered_set<std::uint64_t> taken_;
};

/// Writes the programs of a profile to a trace.
class xplane_writer {
 public:
  xplane_writer(const xplane_file& profile, const xplane_trace_options& options, extend::trace_writer& writer,
                const hlo_categorizer& categorize, std::vector<std::string>& remarks)
      : profile_(profile), options_(options), writer_(writer), categorize_(categorize), remarks_(remarks) {}

  void write(const xplane_program& program) {
    const hlo_memory memory{profile_.file(), program.bytes};
    if (memory.program().unknown_values != 0) {
      remarks_.push_back(program.name + ": values in its allocations that are not among its buffers or have no instruction: " +
                         std::to_string(memory.program().unknown_values) + "; they are not counted, as in XLA's viewer");
    }
    // Everything is read and simulated before the first event is written, so that a program is written completely or not at all.
    std::vector<std::pair<std::int64_t, heap_simulation>> spaces;
    for (const std::int64_t space : memory_spaces(memory.program())) spaces.emplace_back(space, memory.simulate(space));
    for (std::uint32_t buffer = 0; buffer < memory.program().buffers.size(); ++buffer) {
      if (memory.program().buffers[buffer].allocation != hlo_none) (void)memory.block(buffer);
    }
    for (const auto& [space, simulated] : spaces) add_facts(program, memory, space, simulated);
    xla_program_writer pass{memory, writer_, categorize_, now_us_};
    for (const auto& [space, simulated] : spaces) pass.write_space(space, xla_space_name(space, profile_.has_tpu()), simulated);
    writer_.end_segment(program.name);
  }

  void write_facts() {
    writer_.add_facts(extend::to_table(programs_));
    writer_.add_facts(extend::to_table(rows_));
    writer_.add_facts(extend::to_table(std::vector<source_limit>{{{}, 1, 1}}));
  }

 private:
  void add_facts(const xplane_program& program, const hlo_memory& memory, std::int64_t space, const heap_simulation& simulated) {
    xla_program_fact fact{program.name,
                          xla_space_name(space, profile_.has_tpu()),
                          simulated.peak,
                          simulated.unpadded_peak,
                          simulated.parameters,
                          simulated.outputs,
                          simulated.peak - simulated.indefinite,
                          simulated.all_allocations,
                          simulated.thread_local_bytes,
                          0};
    for (const xplane_runs& runs : profile_.runs()) {
      if (runs.program == program.name) fact.runs += static_cast<std::int64_t>(runs.count);
    }
    std::vector<hlo_live_buffer> largest = simulated.live_at_peak;
    const auto bytes = [&](const hlo_live_buffer& live) { return memory.program().buffers[live.shown].bytes; };
    std::stable_sort(largest.begin(), largest.end(),
                     [&](const auto& left, const auto& right) { return bytes(left) > bytes(right); });
    const std::size_t room = options_.all_rows - std::min(options_.all_rows, rows_.size());
    largest.resize(std::min({largest.size(), options_.rows, room}));
    for (const hlo_live_buffer& live : largest) {
      const hlo_block block = memory.block(live.shown);
      rows_.push_back({program.name, fact.space, block.instruction, block.op_name, block.opcode,
                       block.source_file.empty() ? std::string{} : block.source_file + ':' + std::to_string(block.source_line),
                       block.shape, std::string{to_string(block.group)}, block.bytes, block.unpadded_bytes});
    }
    programs_.push_back(std::move(fact));
  }

  const xplane_file& profile_;
  const xplane_trace_options& options_;
  extend::trace_writer& writer_;
  const hlo_categorizer& categorize_;
  std::vector<std::string>& remarks_;
  std::int64_t now_us_ = 0;
  std::vector<xla_program_fact> programs_;
  std::vector<xla_live_block_fact> rows_;
};

}  // namespace

extend::capture_info xplane_trace::info() const {
  extend::capture_info made;
  made.library_version = version_string;
  made.process.host = profile_.host();
  made.operations = imported_operations;
  return made;
}

void xplane_trace::write_to(extend::trace_writer& writer, const hlo_categorizer& categorize) {
  xplane_writer to{profile_, options_, writer, categorize, remarks_};
  for (const xplane_program& program : profile_.programs()) {
    if (!options_.program.empty() && !is_named(program, options_.program)) continue;
    try {
      to.write(program);
      ++written_;
    } catch (const error& fault) {
      remarks_.push_back(program.name + ": " + profile_.fault_of(fault));
    }
  }
  to.write_facts();
  const bool is_whole = profile_.damage().empty() && remarks_.empty();
  if (!is_whole) writer.put_event({0, 0, 1, 0, extend::event_kind::gap, extend::any_space, 0});  // one or more events
}

}  // namespace memprof::inline MEMPROF_ABI
