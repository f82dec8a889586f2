// Reads the CSV log of RAPIDS Memory Manager's logging_resource_adaptor and writes it as a trace, on which `memprof show`, the
// model of PyTorch's allocator and everything else work. All that a reader of a foreign format needs is a trace_writer.
#include <memprof/memprof.hpp>
#include <memprof/profile/trace_profile.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end == text.npos ? 0 : end + 1)) {
    end = text.find(separator);
    parts.push_back(text.substr(0, end));
  }
  return parts;
}

template <class Integer>
Integer number(std::string_view text, int base = 10) {
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  Integer value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (fault != std::errc{} || end != text.data() + text.size())
    throw std::runtime_error{"'" + std::string{text} + "' is not a number"};
  return value;
}

/// Nanoseconds since midnight of "23:59:59.999000".
std::int64_t time_of_day(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, ':');
  const std::vector<std::string_view> seconds = split(parts.back(), '.');
  if (parts.size() != 3 || seconds.size() != 2 || seconds[1].size() != 6) {
    throw std::runtime_error{"'" + std::string{text} + "' is not a time such as 12:34:56.789012"};
  }
  const auto whole =
      (number<std::int64_t>(parts[0]) * 60 + number<std::int64_t>(parts[1])) * 60 + number<std::int64_t>(seconds[0]);
  return whole * 1'000'000'000 + number<std::int64_t>(seconds[1]) * 1000;
}

void read_line(std::string_view line, memprof::trace_writer& writer, memprof::space_id gpu) {
  static std::int64_t begin = -1, last = 0, days = 0;
  static std::map<std::string, std::uint32_t, std::less<>> threads;
  const std::vector<std::string_view> fields = split(line, ',');
  if (fields.size() != 6) throw std::runtime_error{"expected Thread,Time,Action,Pointer,Size,Stream"};
  constexpr std::int64_t day = 86'400'000'000'000;
  std::int64_t now = time_of_day(fields[1]) + days * day;
  if (begin >= 0 && now < last - day / 2) {  // past midnight
    now += day;
    ++days;
  }
  if (begin < 0) begin = now;
  last = now;
  writer.at(now - begin);
  const auto thread = threads.try_emplace(std::string{fields[0]}, static_cast<std::uint32_t>(threads.size() + 1)).first->second;
  writer.on_thread(thread, {}, number<std::uint64_t>(fields[0]));

  const memprof::block_address address{number<std::uint64_t>(fields[3], 16)};
  const auto bytes = number<std::uint64_t>(fields[4]);
  if (fields[2] == "allocate") {
    writer.allocate(gpu, address, bytes);
  } else if (fields[2] == "free") {
    writer.deallocate(gpu, address, bytes);
  } else if (fields[2] == "allocate failure") {
    writer.put_event({0, 0, bytes, 0, memprof::event_kind::out_of_memory, gpu.value, 0});
  } else {
    throw std::runtime_error{"'" + std::string{fields[2]} + "' is not an action"};
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: rmm_trace LOG.csv RUN.memtrace\n");
    return 2;
  }
  std::size_t line_number = 0;
  try {
    std::ifstream log{arguments[1]};
    if (!log) throw std::runtime_error{"cannot be read"};
    memprof::trace trace;
    memprof::trace_writer writer{trace};
    const memprof::space_id gpu = writer.space("gpu");
    for (std::string line; std::getline(log, line);) {
      ++line_number;
      if (!line.starts_with("Thread,")) read_line(line, writer, gpu);
    }
    line_number = 0;
    writer.finish("RMM_LOG");
    memprof::write_trace(trace, arguments[2]);
    const memprof::profile profile = memprof::profile_of(trace);
    const memprof::space_profile& space = profile.space("gpu");
    std::printf("gpu: peak %lld bytes, live at the end %lld\n", static_cast<long long>(space.cumulative_peak),
                static_cast<long long>(space.cumulative_current));
  } catch (const std::exception& fault) {
    const std::string place = line_number == 0 ? "" : "line " + std::to_string(line_number) + ": ";
    std::fprintf(stderr, "%s: %s%s\n", arguments[1], place.c_str(), fault.what());
    return 1;
  }
}
