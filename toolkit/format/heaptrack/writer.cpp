#include <memprof/config.hpp>
#include <memprof/toolkit/format/byte_sink.hpp>
#include <memprof/toolkit/format/heaptrack/writer.hpp>
#include <memprof/toolkit/format/json_text.hpp>
#include <memprof/toolkit/format/source_frame.hpp>
#include <memprof/toolkit/format/trace_replay.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/toolkit/format/trace_source_view.hpp>
#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// Appends a number as heaptrack writes it, after a space.
void append_heaptrack_number(std::string& line, std::uint64_t value) {
  std::array<char, 16> digits{};
  const auto [end, fault] = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16);
  line += ' ';
  line.append(digits.data(), end);
}

/// A text as a line of heaptrack can hold it: UTF-8 without control characters.
std::string heaptrack_text(std::string_view text) {
  std::string sound;
  detail::append_utf8(sound, text);
  std::replace_if(
      sound.begin(), sound.end(), [](char character) { return static_cast<unsigned char>(character) < 0x20; }, ' ');
  return sound;
}

/// The lines of a recording. Entries of its tables are written before the first line that refers to them, and numbered from 1.
class heaptrack_lines {
 public:
  explicit heaptrack_lines(byte_sink_view out) noexcept : out_(out) {}

  void write(std::string_view line) {
    text_ += line;
    text_ += '\n';
    constexpr std::size_t piece = std::size_t{1} << 16;
    if (text_.size() >= piece) flush();
  }
  void flush() {
    out_.write(text_);
    text_.clear();
  }

  /// 0 for an empty text.
  [[nodiscard]] std::uint64_t string(std::string_view text) {
    if (text.empty()) return 0;
    const auto [found, is_new] = strings_.try_emplace(heaptrack_text(text), strings_.size() + 1);
    if (is_new) write("s " + found->first);
    return found->second;
  }
  /// The functions of a return address, innermost first; at least one.
  [[nodiscard]] std::uint64_t instruction(const std::vector<source_frame>& calls) {
    std::string line = "i";
    append_heaptrack_number(line, calls.front().offset);
    append_heaptrack_number(line, string(calls.front().module));
    const bool has_names = calls.size() > 1 || !calls.front().function.empty() || !calls.front().file.empty();
    for (std::size_t index = 0; has_names && index < calls.size(); ++index) {
      append_heaptrack_number(line, string(calls[index].function));
      if (calls.size() == 1 && calls[index].file.empty()) continue;
      append_heaptrack_number(line, string(calls[index].file));
      append_heaptrack_number(line, static_cast<std::uint64_t>(std::max(calls[index].line, 0)));
    }
    return entry(instructions_, std::move(line));
  }
  /// A call within the stack `around`.
  [[nodiscard]] std::uint64_t stack(std::uint64_t instruction, std::uint64_t around) {
    return entry_of(stacks_, 't', instruction, around) + 1;
  }
  /// What an allocation is, numbered from 0.
  [[nodiscard]] std::uint64_t allocation(std::uint64_t bytes, std::uint64_t stack) {
    return entry_of(allocations_, 'a', bytes, stack);
  }

  /// Without this, a reader takes the recording for one that was cut off.
  void finish() {
    write("# strings: " + std::to_string(strings_.size()));
    write("# ips: " + std::to_string(instructions_.size()));
    flush();
  }

 private:
  using pairs = std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>;

  [[nodiscard]] std::uint64_t entry(std::unordered_map<std::string, std::uint64_t>& table, std::string line) {
    const auto [found, is_new] = table.try_emplace(std::move(line), table.size() + 1);
    if (is_new) write(found->first);
    return found->second;
  }
  [[nodiscard]] std::uint64_t entry_of(pairs& table, char kind, std::uint64_t first, std::uint64_t second) {
    const auto [found, is_new] = table.try_emplace({first, second}, table.size());
    if (is_new) {
      std::string line{kind};
      append_heaptrack_number(line, first);
      append_heaptrack_number(line, second);
      write(line);
    }
    return found->second;
  }

  byte_sink_view out_;
  std::string text_;
  std::unordered_map<std::string, std::uint64_t> strings_;
  std::unordered_map<std::string, std::uint64_t> instructions_;  // by their lines
  pairs stacks_;
  pairs allocations_;
};

/// Writes what happens in one memory space.
class heaptrack_replay : public replay_handler {
 public:
  heaptrack_replay(std::string_view space, const calls_of_stack& calls, byte_sink_view out)
      : space_(space), calls_(calls), lines_(out) {}

  void on_allocation(const replay_state& at, const replayed_block& block) {
    if (at.space_name(block.space) != space_) return;
    begin(at);
    put('+', at, block);
  }
  void on_deallocation(const replay_state& at, const replayed_block& block, std::uint32_t) {
    if (at.space_name(block.space) != space_) return;
    put('-', at, block);
  }

  void finish(const replay_state& at) {
    begin(at);
    put_time(at);
    lines_.finish();
  }

 private:
  static constexpr std::int64_t ns_per_millisecond = 1'000'000;

  void begin(const replay_state& at) {
    if (std::exchange(has_begun_, true)) return;
    lines_.write("v 10000 1");
    lines_.write("X " + heaptrack_text(at.info.process.command_line));
  }
  void put_time(const replay_state& at) {
    const std::int64_t now_ms = at.now_ns / ns_per_millisecond;
    if (now_ms <= now_ms_) return;
    now_ms_ = now_ms;
    std::string line = "c";
    append_heaptrack_number(line, static_cast<std::uint64_t>(now_ms));
    lines_.write(line);
  }
  void put(char kind, const replay_state& at, const replayed_block& block) {
    put_time(at);
    std::string line{kind};
    append_heaptrack_number(line, lines_.allocation(block.bytes, stack_of(at, block)));
    lines_.write(line);
  }

  [[nodiscard]] std::uint64_t stack_of(const replay_state& at, const replayed_block& block) {
    const extend::label asked = calls_ ? block.call_stack : 0;
    const auto [found, is_new] = stacks_.try_emplace({block.operation, asked});
    if (!is_new) return found->second;
    std::uint64_t stack = stack_of_operation(at, block.operation);
    if (asked != 0) {
      const std::vector<std::vector<source_frame>> frames = calls_(at.names, asked);
      for (auto calls = frames.rbegin(); calls != frames.rend(); ++calls) {
        if (!calls->empty()) stack = lines_.stack(lines_.instruction(*calls), stack);
      }
    }
    return found->second = stack;
  }
  [[nodiscard]] std::uint64_t stack_of_operation(const replay_state& at, std::uint32_t operation) {
    std::vector<std::uint32_t> path;
    for (; operation != 0; operation = at.operations()[operation].parent) path.push_back(operation);
    std::uint64_t stack = 0;
    for (auto node = path.rbegin(); node != path.rend(); ++node) {
      source_frame call;
      call.function = at.names.text(at.operations()[*node].name);
      if (call.function.empty()) call.function = "(unnamed)";
      stack = lines_.stack(lines_.instruction({std::move(call)}), stack);
    }
    return stack;
  }

  std::string space_;
  const calls_of_stack& calls_;
  heaptrack_lines lines_;
  bool has_begun_ = false;
  std::int64_t now_ms_ = 0;
  std::map<std::pair<std::uint32_t, extend::label>, std::uint64_t> stacks_;  // by operation and label
};

}  // namespace

void write_heaptrack(trace_source_view source, std::string_view space, const calls_of_stack& calls, byte_sink_view out) {
  clock_visitor times;
  source.visit(times);
  heaptrack_replay written{space, calls, out};
  trace_replay replay{written, times.clock};
  source.visit(replay);
  written.finish(replay.state());
}

}  // namespace memprof::inline MEMPROF_ABI
