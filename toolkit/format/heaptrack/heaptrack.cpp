#include <memprof/config.hpp>
#include <memprof/profile/fact/heap_stacks.hpp>
#include <memprof/toolkit/format/function_name.hpp>
#include <memprof/toolkit/format/heaptrack/blocks.hpp>
#include <memprof/toolkit/format/heaptrack/heaptrack.hpp>
#include <memprof/toolkit/format/heaptrack/operations.hpp>
#include <memprof/toolkit/format/heaptrack/stack_labels.hpp>
#include <memprof/toolkit/format/heaptrack/stacks.hpp>
#include <memprof/toolkit/format/line_reader.hpp>
#include <memprof/toolkit/format/quoted_text.hpp>
#include <memprof/toolkit/format/recorded_event_writer.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/label.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

constexpr std::size_t longest_recorded_line = std::size_t{16} << 20;
constexpr std::uint64_t oldest_version = 1;
constexpr std::uint64_t newest_version = 3;
constexpr std::uint64_t version_of_sized_strings = 3;
constexpr std::uint64_t max_bytes = std::uint64_t{1} << 47;  ///< that a process can have on today's systems
constexpr const char* too_large = "size exceeds 2^47 bytes";
constexpr std::int64_t ns_per_ms = 1'000'000;

/// The open operations: the frames of an allocation's stack. They stay open only while allocations follow and no time passes, so
/// that none appears to last or to free: heaptrack records neither.
class heaptrack_open_stack {
 public:
  /// `names`: null, if stacks are no operations.
  heaptrack_open_stack(extend::trace_writer& writer, detail::heaptrack_operations* names) : writer_(writer), names_(names) {}

  void go_to(std::uint32_t stack) {
    if (names_ == nullptr || stack == stack_) return;
    const std::vector<std::uint32_t>& names = names_->operations_of(stack);
    std::size_t same = 0;
    while (same < names.size() && same < open_.size() && open_[same].name == names[same]) ++same;
    close(same);
    for (; same < names.size(); ++same) open_.push_back({names[same], writer_.begin_operation(names_->name_of(names[same]), {})});
    stack_ = stack;
  }
  void close(std::size_t kept = 0) {
    for (; open_.size() > kept; open_.pop_back()) writer_.end_operation(open_.back().operation);
    if (kept == 0) stack_ = 0;
  }

 private:
  struct frame {
    std::uint32_t name;
    extend::trace_writer::open_operation_type operation;
  };

  extend::trace_writer& writer_;
  detail::heaptrack_operations* names_;
  std::vector<frame> open_;
  std::uint32_t stack_ = 0;
};

template <std::size_t Count>
std::array<std::uint64_t, Count> numbers_in(std::string_view line, const detail::line_reader& lines) {
  std::array<std::uint64_t, Count> values{};
  detail::heaptrack_numbers numbers{line.substr(2)};
  constexpr const char* expected = Count == 1 ? "expected one hexadecimal number" : "expected two hexadecimal numbers";
  static_assert(Count == 1 || Count == 2);
  for (std::uint64_t& value : values) {
    if (!numbers.next(value)) lines.fail(expected);
  }
  if (!numbers.rest().empty()) lines.fail(expected);
  return values;
}

}  // namespace

bool is_heaptrack(std::FILE* file) {
  std::array<char, 32> begin{};
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file);
  std::rewind(file);
  std::string_view first{begin.data(), got};
  if (first.starts_with("\xEF\xBB\xBF")) first.remove_prefix(3);  // the reader reports what is wrong
  const std::size_t end = first.find('\n');
  if (end == first.npos || !first.starts_with("v ")) return false;
  detail::heaptrack_numbers numbers{first.substr(2, end - 2 - (first[end - 1] == '\r' ? 1 : 0))};
  std::uint64_t heaptrack = 0;
  std::uint64_t version = 0;
  return numbers.next(heaptrack) && (numbers.rest().empty() || numbers.next(version)) && numbers.rest().empty();
}

heaptrack_source::heaptrack_source(std::FILE* file, const std::filesystem::path& path, std::optional<stack_frames> operations)
    : lines_(file, path, longest_recorded_line) {
  if (operations) operations_.emplace(stacks_, *operations);
  info_.operations = imported_operations;
  const bool has_line = lines_.next();
  if (has_line && lines_.line().starts_with("\xEF\xBB\xBFv "))
    lines_.fail("begins with a byte order mark, which heaptrack does not write; an editor has changed the file");
  if (!has_line || lines_.is_cut() || !lines_.line().starts_with("v "))
    detail::raise_about_file("read", path, "not a recording of heaptrack: expected a first line such as 'v 10400 3'");
  if (lines_.line().ends_with('\r')) lines_.fail("ends with CR LF, but heaptrack writes LF: convert the file with dos2unix");
  read_version(lines_.line().substr(2));
  while ((has_line_ = lines_.next()) && !lines_.is_cut() && read_head(lines_.line())) {
  }
}

void heaptrack_source::write_to(extend::trace_writer& writer) {
  const extend::space_id cpu = writer.space("cpu");
  heaptrack_open_stack open{writer, operations_ ? &*operations_ : nullptr};
  heap_stacks recorded;
  recorded.unwinder = "heaptrack";
  for (; has_line_ && !lines_.is_cut(); has_line_ = lines_.next()) {
    const std::string_view line = lines_.line();
    if (line.starts_with("+ ")) {
      const std::uint64_t kind = kind_in(line);
      const std::uint64_t address = blocks_.allocate(kind);
      if (address == 0) lines_.fail("size exceeds 2^62 bytes");
      open.go_to(blocks_[kind].stack);
      const extend::label stack = operations_ ? 0 : labels_.of(blocks_[kind].stack, writer);
      if (stack == 0) ++recorded.missing_blocks;
      writer.put_event({0, address, blocks_[kind].bytes, stack, extend::event_kind::allocate, cpu.value, 0});
    } else if (line.starts_with("- ")) {
      const std::uint64_t kind = kind_in(line);
      const std::uint64_t address = blocks_.deallocate(kind);
      if (address == 0) lines_.fail("no such allocation is live");
      open.close();  // the freeing stack is not recorded
      writer.deallocate(cpu, extend::block_address{address}, blocks_[kind].bytes);
    } else if (line.starts_with("c ")) {
      open.close();
      writer.at(time_in(line) * ns_per_ms);
    } else if (!read_head(line)) {
      read_table_entry(line);
    }
  }
  open.close();
  if (!operations_) writer.add_facts(extend::to_table(std::vector{recorded}));
  writer.add_facts(extend::to_table(std::vector{recording_}));
  if (lines_.is_cut()) {
    damage_ = "line " + std::to_string(lines_.number()) + " is cut off";
  } else if (!is_whole_) {
    damage_ = "line " + std::to_string(lines_.number()) + " is the last, but a recording ends with a line '# ips: ...'";
  }
}

void heaptrack_source::read_version(std::string_view line) {
  detail::heaptrack_numbers numbers{line};
  std::uint64_t heaptrack = 0;
  std::uint64_t version = 0;
  if (!numbers.next(heaptrack) || (!numbers.rest().empty() && !numbers.next(version)) || !numbers.rest().empty())
    lines_.fail("expected the versions of heaptrack and of its format, such as 'v 10400 3'");
  constexpr std::uint64_t first_without_version = 0x010200;  // in version 1, before the line had a second number
  if (version == 0 && heaptrack == first_without_version) version = 1;
  if (version < oldest_version || version > newest_version)
    lines_.fail("unsupported version " + std::to_string(version) + " of heaptrack's format; expected 1, 2 or 3");
  constexpr std::uint64_t first_within_calls = 0x010300;  // whose addresses are one below those that calls return to
  if (heaptrack >= first_within_calls) labels_.set_address_offset(1);
  recording_.file_version = static_cast<std::int64_t>(version);
  recording_.heaptrack_version =
      std::to_string(heaptrack >> 16) + '.' + std::to_string(heaptrack >> 8 & 0xff) + '.' + std::to_string(heaptrack & 0xff);
}

bool heaptrack_source::read_head(std::string_view line) {
  if (line.empty() || line[0] == '#') {
    is_whole_ = is_whole_ || line.starts_with("# ips: ");
    return true;
  }
  if (line == "A") {
    recording_.is_attached = 1;
    return true;
  }
  if (line.starts_with("S ")) return true;  // a LeakSanitizer suppression
  if (line.starts_with("X ")) {
    if (info_.process.command_line.empty()) info_.process.command_line = line.substr(2);
    return true;
  }
  if (line.starts_with("I ")) {
    const auto [page, pages] = numbers_in<2>(line, lines_);
    if (page > max_bytes || (page != 0 && pages > max_bytes / page)) lines_.fail(too_large);
    page_bytes_ = page;
    recording_.system_memory_bytes = static_cast<std::int64_t>(page * pages);
    return true;
  }
  if (line.starts_with("x ") || line.starts_with("m "))
    lines_.fail("the recording is raw; pass it through heaptrack_interpret first, or record without --raw");
  return false;
}

void heaptrack_source::read_table_entry(std::string_view line) {
  const char* fault = nullptr;
  if (line.starts_with("s ")) {
    fault = read_string(line.substr(2));
  } else if (line.starts_with("i ")) {
    fault = stacks_.add_instruction(line.substr(2));
  } else if (line.starts_with("t ")) {
    fault = stacks_.add_stack(line.substr(2));
  } else if (line.starts_with("a ")) {
    const auto [bytes, stack] = numbers_in<2>(line, lines_);
    if (bytes > max_bytes) lines_.fail(too_large);
    if (!stacks_.contains(stack)) lines_.fail("the stack is not defined above");
    blocks_.add_kind(bytes, stack);
  } else if (line.starts_with("R ")) {
    const std::uint64_t pages = numbers_in<1>(line, lines_)[0];
    if (page_bytes_ != 0 && pages > max_bytes / page_bytes_) lines_.fail(too_large);
    const auto bytes = static_cast<std::int64_t>(pages * page_bytes_);
    if (bytes > recording_.peak_rss_bytes) {
      recording_.peak_rss_bytes = bytes;
      recording_.peak_rss_at_ns = now_ms_ * ns_per_ms;
    }
  } else {
    lines_.fail(line.starts_with("v ") ? "a second recording begins here; import each on its own"
                                       : "unknown kind of line: " + detail::quoted(line));
  }
  if (fault != nullptr) lines_.fail(fault);
}

const char* heaptrack_source::read_string(std::string_view text) {
  if (recording_.file_version < static_cast<std::int64_t>(version_of_sized_strings)) return stacks_.add_string(text);
  detail::heaptrack_numbers numbers{text};
  std::uint64_t size = 0;
  if (!numbers.next(size) || size != numbers.rest().size()) return "the string does not match the length before it";
  return stacks_.add_string(numbers.rest());
}

std::uint64_t heaptrack_source::kind_in(std::string_view line) const {
  const std::uint64_t index = numbers_in<1>(line, lines_)[0];
  if (index >= blocks_.kinds()) lines_.fail("the allocation is not defined above");
  return index;
}

std::int64_t heaptrack_source::time_in(std::string_view line) {
  const std::uint64_t ms = numbers_in<1>(line, lines_)[0];
  constexpr std::uint64_t max_ms = std::uint64_t{1} << 43;
  if (ms > max_ms || static_cast<std::int64_t>(ms) < now_ms_) lines_.fail("time runs backwards or overflows");
  return now_ms_ = static_cast<std::int64_t>(ms);
}

}  // namespace memprof::inline MEMPROF_ABI
