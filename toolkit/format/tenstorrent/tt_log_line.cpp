#include <memprof/config.hpp>
#include <memprof/detail/parse_double.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace memprof::inline MEMPROF_ABI {

double tt_fragmentation(double largest_free, double free) noexcept {
  return free > 0 && largest_free < free ? 1 - largest_free / free : 0;
}

std::int64_t bytes_of_mebibytes(double mebibytes) noexcept { return static_cast<std::int64_t>(std::llround(mebibytes * 0x1p20)); }

namespace detail {

mpi_label mpi_label_of(std::string_view line) noexcept {
  if (!line.starts_with('[')) return {};
  const std::string_view job = digits_at(line, 1);
  std::size_t at = 1 + job.size();
  if (job.empty() || at >= line.size() || line[at] != ',') return {};
  const std::string_view rank = digits_at(line, at + 1);
  at += 1 + rank.size();
  for (const std::string_view stream : {"]<stdout>:", "]<stderr>:"}) {
    if (rank.empty() || !line.substr(at).starts_with(stream)) continue;
    at += stream.size();
    return {rank, at < line.size() && line[at] == ' ' ? at + 1 : at};
  }
  return {};
}

std::optional<std::string_view> text_after(std::string_view line, std::string_view head) noexcept {
  const std::size_t at = line.find(head);
  if (at == std::string_view::npos) return std::nullopt;
  return trimmed(line.substr(at + head.size()));
}

std::string_view word_after(std::string_view line, std::string_view head) noexcept {
  const std::optional<std::string_view> rest = text_after(line, head);
  return rest ? rest->substr(0, rest->find_first_of(" \t")) : std::string_view{};
}

std::optional<std::int64_t> whole_number(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> bytes_after(std::string_view line, std::string_view head) noexcept {
  const std::optional<std::string_view> rest = text_after(line, head);
  if (!rest) return std::nullopt;
  const std::string_view digits = digits_at(*rest, 0);
  return rest->substr(digits.size()).starts_with(" B") ? whole_number(digits) : std::nullopt;
}

namespace {

/// The index of a kind of memory in `tt_memory_names`; nothing if it is unknown. Some versions write "L1 SMALL".
constexpr std::optional<std::size_t> tt_memory_of(std::string_view name) noexcept {
  if (name == "L1 SMALL") name = "L1_SMALL";
  for (std::size_t index = 0; index < tt_memory_count; ++index) {
    if (tt_memory_names[index] == name) return index;
  }
  return std::nullopt;
}

constexpr std::string_view tt_view_head = "memory state: MemoryView{";

}  // namespace

std::optional<std::size_t> tt_memory_of_line(std::string_view line) noexcept {
  constexpr std::string_view device = "Device ";
  const std::size_t end = line.find(tt_view_head);
  if (end == std::string_view::npos) return std::nullopt;
  const std::size_t begin = line.substr(0, end).rfind(device);
  if (begin == std::string_view::npos) return std::nullopt;
  return tt_memory_of(trimmed(line.substr(begin + device.size(), end - begin - device.size())));
}

namespace {

/// A number of MiB as a log prints it.
struct tt_mebibytes {
  double value = 0;
  double step = 1;  ///< a unit of the last digit
};

/// The number of MiB in "0.008 MB": digits, possibly with a decimal point; nothing if the text is anything else.
std::optional<tt_mebibytes> mebibytes_of(std::string_view text) noexcept {
  constexpr std::string_view unit = " MB";
  constexpr std::size_t max_digits = 64;
  if (!text.ends_with(unit) || !is_digit(text.front())) return std::nullopt;
  text.remove_suffix(unit.size());
  const std::size_t point = digits_at(text, 0).size();
  const std::string_view decimals = point < text.size() && text[point] == '.' ? digits_at(text, point + 1) : std::string_view{};
  if (text.size() > max_digits || (point < text.size() && text.size() != point + 1 + decimals.size())) return std::nullopt;
  tt_mebibytes read;
  const auto [end, fault] = parse_double(text, read.value);
  if (fault != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  for (std::size_t digit = 0; digit < decimals.size(); ++digit) read.step /= 10;
  return read;
}

}  // namespace

std::optional<tt_memory_view> parse_tt_memory_view(std::string_view line) noexcept {
  const std::size_t head = line.find(tt_view_head);
  const std::size_t end = head == std::string_view::npos ? head : line.find('}', head);
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view fields = line.substr(head + tt_view_head.size(), end - head - tt_view_head.size());
  tt_memory_view view;
  unsigned seen = 0;
  const auto take = [&](double& field, unsigned bit, std::string_view value) {
    const std::optional<tt_mebibytes> number = mebibytes_of(value);
    if (!number) return;
    field = number->value;
    view.step = std::max(view.step, number->step);
    seen |= bit;
  };
  while (!fields.empty()) {
    const std::string_view field = fields.substr(0, fields.find(','));
    fields.remove_prefix(field.size() + (field.size() < fields.size() ? 1 : 0));
    const std::size_t colon = field.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view key = trimmed(field.substr(0, colon));
    const std::string_view value = trimmed(field.substr(colon + 1));
    if (key == "numBanks") {
      const std::optional<std::int64_t> banks = whole_number(value);
      if (banks) view.banks = *banks;
      if (banks) seen |= 1;
    }
    if (key == "totalBytesPerBank") take(view.total, 2, value);
    if (key == "totalBytesAllocatedPerBank") take(view.allocated, 4, value);
    if (key == "totalBytesFreePerBank") take(view.free, 8, value);
    if (key == "largestContiguousBytesFreePerBank") take(view.largest_free, 16, value);
  }
  return seen == 31 ? std::optional{view} : std::nullopt;
}

std::string_view impossibility_of(const tt_memory_view& view) noexcept {
  constexpr double most = 0x1p24;
  const double greatest = std::max({view.total, view.allocated, view.free, view.largest_free});
  const double rounding = 2 * view.step;  // of two numbers
  if (view.banks > 65'536) return "it has more than 65,536 banks";
  if (greatest > most) return "a bank has more than 16 TiB";
  if (view.banks == 0 && greatest > 0) return "it has bytes but no banks";
  if (view.allocated > view.total + rounding) return "more is allocated than the total";
  if (view.free > view.total + rounding) return "more is free than the total";
  if (view.largest_free > view.free + rounding) return "the largest free block exceeds the free bytes";
  if (view.allocated + view.free > view.total + rounding) return "allocated and free bytes exceed the total";
  return {};
}

std::optional<tt_out_of_memory> parse_tt_out_of_memory(std::string_view line) noexcept {
  constexpr std::string_view head = "Not enough space to allocate ";
  const std::optional<std::int64_t> requested = bytes_after(line, head);
  const std::optional<std::string_view> across = text_after(line, " buffer across ");
  const std::optional<std::int64_t> per_bank = bytes_after(line, "each bank needs to store ");
  if (!requested || !across || !per_bank) return std::nullopt;
  const std::string_view before = line.substr(0, line.find(" buffer across "));
  const std::optional<std::size_t> memory = tt_memory_of(before.substr(before.rfind(' ') + 1));
  const std::optional<std::int64_t> banks = whole_number(digits_at(*across, 0));
  if (!memory || !banks) return std::nullopt;
  tt_out_of_memory found{*memory, *requested, *banks, *per_bank, -1, -1, -1, -1};
  found.bank_size = bytes_after(line, "bank size is ").value_or(-1);
  found.allocated = bytes_after(line, "(allocated: ").value_or(-1);
  found.free = bytes_after(line, ", free: ").value_or(-1);
  found.largest_free = bytes_after(line, "largest free block: ").value_or(-1);
  return found;
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
