#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/byte_reader.hpp>
#include <memprof/toolkit/format/quoted_text.hpp>
#include <memprof/toolkit/format/rmm/log.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace memprof::inline MEMPROF_ABI {

namespace {

/// Reads lines of the log of RAPIDS Memory Manager's `logging_resource_adaptor`: `Thread,Time,Action,Pointer,Size,Stream`, with
/// times as `%H:%M:%S.%f` and no date.
class rmm_line_reader {
 public:
  explicit rmm_line_reader(extend::trace_writer& writer) : writer_(writer), space_(writer.space("gpu")) {}

  /// What is wrong with the line; empty if it is valid and was handed on.
  [[nodiscard]] std::string read(std::string_view line) {
    std::array<std::string_view, 6> fields;
    std::size_t count = 0;
    for (bool is_more = true; is_more; ++count) {
      const std::size_t end = line.find(',');
      if (count < fields.size()) fields[count] = line.substr(0, end);
      is_more = end != line.npos;
      line.remove_prefix(is_more ? end + 1 : line.size());
    }
    if (count != fields.size()) return "expected Thread,Time,Action,Pointer,Size,Stream";
    const std::optional<std::uint64_t> thread = number(fields[0], 10);
    const std::optional<std::int64_t> time = time_of_day(fields[1]);
    const std::optional<std::uint64_t> address = number(fields[3], 16);
    const std::optional<std::uint64_t> bytes = number(fields[4], 10);
    if (!thread) return not_a(fields[0], "a thread number");
    if (!time) return not_a(fields[1], "a time such as 12:34:56.789012");
    if (!address) return not_a(fields[3], "an address such as 0x7f1c00000000");
    if (!bytes || *bytes > max_bytes) return not_a(fields[4], "a number of bytes below 2^63");
    const bool is_allocation = fields[2] == "allocate";
    const bool is_failure = fields[2] == "allocate failure";
    if (!is_allocation && !is_failure && fields[2] != "free")
      return not_a(fields[2], "an action (allocate, allocate failure or free)");
    if (is_allocation && *bytes > max_bytes - allocated_) return "the allocations so far total 2^63 bytes or more";
    if (is_allocation) allocated_ += *bytes;
    writer_.at(since_begin(*time));
    writer_.on_thread(threads_.try_emplace(*thread, static_cast<std::uint32_t>(threads_.size() + 1)).first->second, {}, *thread);
    if (is_failure) {
      writer_.put_event({0, extend::unknown_device_free, *bytes, 0, extend::event_kind::out_of_memory, space_.value, 0});
    } else if (is_allocation) {
      writer_.allocate(space_, extend::block_address{*address}, *bytes, {});
    } else {
      writer_.deallocate(space_, extend::block_address{*address}, *bytes);
    }
    return {};
  }

 private:
  [[nodiscard]] static std::string not_a(std::string_view text, const char* what) {
    return detail::quoted(text) + " is not " + what;
  }
  [[nodiscard]] static std::optional<std::uint64_t> number(std::string_view text, int base) noexcept {
    if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
    if (base == 16 && text == "(nil)") return 0;  // as glibc prints a null pointer
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
  }
  /// Nanoseconds since midnight.
  [[nodiscard]] static std::optional<std::int64_t> time_of_day(std::string_view text) noexcept {
    if (text.size() != 15 || text[2] != ':' || text[5] != ':' || text[8] != '.') return std::nullopt;
    const std::optional<std::uint64_t> hours = number(text.substr(0, 2), 10);
    const std::optional<std::uint64_t> minutes = number(text.substr(3, 2), 10);
    const std::optional<std::uint64_t> seconds = number(text.substr(6, 2), 10);
    const std::optional<std::uint64_t> microseconds = number(text.substr(9), 10);
    if (!hours || !minutes || !seconds || !microseconds || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
    return static_cast<std::int64_t>((((*hours * 60 + *minutes) * 60 + *seconds) * 1'000'000 + *microseconds) * 1000);
  }
  /// A time half a day or more before the last one is after midnight.
  [[nodiscard]] std::int64_t since_begin(std::int64_t time) noexcept {
    constexpr std::int64_t day = 86'400'000'000'000;
    std::int64_t now = time + days_ * day;
    if (begin_ < 0) {
      begin_ = last_ = now;
    } else if (now < last_ - day / 2) {
      now += day;
      ++days_;
    }
    last_ = now;
    return now - begin_;
  }

  static constexpr auto max_bytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  extend::trace_writer& writer_;
  extend::space_id space_;
  std::uint64_t allocated_ = 0;
  std::int64_t begin_ = -1;
  std::int64_t last_ = 0;
  std::int64_t days_ = 0;
  std::map<std::uint64_t, std::uint32_t> threads_;
};

}  // namespace

bool is_rmm_log(std::FILE* file) {
  constexpr std::string_view head = "Thread,Time,Action,Pointer,Size,Stream";
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  std::array<char, byte_order_mark.size() + head.size()> first{};
  const std::size_t got = std::fread(first.data(), 1, first.size(), file);
  std::rewind(file);
  std::string_view begin{first.data(), got};
  if (begin.starts_with(byte_order_mark)) begin.remove_prefix(byte_order_mark.size());
  return begin.starts_with(head);
}

std::string read_rmm_log(std::FILE* file, const std::filesystem::path& path, extend::trace_writer& writer) {
  constexpr std::size_t longest_line = 4096;
  detail::byte_reader in{file, path};
  rmm_line_reader lines{writer};
  std::string line;
  bool has_begun = false;  // a valid line has been read
  for (std::uint64_t number = 1;; ++number) {
    line.clear();
    int byte = in.next();
    for (; byte >= 0 && byte != '\n' && line.size() < longest_line; byte = in.next()) line += static_cast<char>(byte);
    if (line.ends_with('\r')) line.pop_back();
    const std::string place = "line " + std::to_string(number);
    if (line.size() >= longest_line) detail::raise_about_file("read", path, place + ": longer than any line of RMM's log");
    if (number == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // the byte order mark of UTF-8
    if (line.starts_with("Thread,")) {
      has_begun = true;
    } else if (!line.empty()) {
      const bool lacks_stream = byte < 0 && line.ends_with(',');  // RMM always writes one
      const std::string fault = lacks_stream ? "expected a stream" : lines.read(line);
      has_begun = has_begun || fault.empty();
      if (!fault.empty() && byte < 0 && has_begun) return place + " is cut off";
      if (!fault.empty()) detail::raise_about_file("read", path, std::string{place}.append(": ").append(fault));
    }
    if (byte < 0 && !has_begun) detail::raise_about_file("read", path, "it is empty; expected an RMM log");
    if (byte < 0) return {};
  }
}

}  // namespace memprof::inline MEMPROF_ABI
