#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/fact/missing_source.hpp>
#include <memprof/profile/fact/pytorch_operation.hpp>
#include <memprof/profile/fact/source_limit.hpp>
#include <memprof/profile/json_document.hpp>
#include <memprof/toolkit/format/pie/session_reader.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/capture_info.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/event.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/memory_name.hpp>
#include <memprof/trace/open_operation.hpp>
#include <memprof/trace/requires_grad.hpp>
#include <memprof/trace/trace_writer.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

using session_json = nlohmann::ordered_json;

constexpr std::int64_t most_session_bytes = std::int64_t{1} << 52;

/// Reads a session profile part by part. `part(section, name, value)` gets each element of an array of the document, and each of
/// an array in an object of it, where `name` is the element's key; none of them is kept. Returns why the end is missing.
class session_parts {
 public:
  using handler = std::function<void(std::string_view section, std::string_view name, const session_json& value)>;

  session_parts(std::FILE* file, const std::filesystem::path& path, handler part)
      : file_(file), path_(path), part_(std::move(part)) {}

  [[nodiscard]] std::string read() {
    json_input input{file_, path_};
    try {
      [[maybe_unused]] const session_json rest = session_json::parse(
          json_input_iterator{&input}, json_input_iterator{},
          [&](int depth, session_json::parse_event_t event, session_json& value) { return take(input, depth, event, value); });
    } catch (const session_json::parse_error& fault) {
      if (input.at_end()) return "it is cut off after " + std::to_string(input.taken()) + " bytes";
      return "byte " + std::to_string(fault.byte == 0 ? 0 : fault.byte - 1) + ": invalid JSON";
    } catch (const session_json::out_of_range&) {
      return "byte " + std::to_string(input.taken()) + ": number too large";
    }
    return {};
  }

 private:
  bool take(json_input& input, int depth, session_json::parse_event_t event, session_json& value) {
    using kind = session_json::parse_event_t;
    constexpr int deepest = 64;
    if (depth > deepest) raise_about_file("read", path_, "byte " + std::to_string(input.taken()) + ": nested too deeply");
    if (event == kind::key || event == kind::value) input.end_token();
    if (event == kind::key && depth == 1) section_ = value.get<std::string>();
    if (event == kind::key && depth == 2) name_ = value.get<std::string>();
    if (is_unused(section_)) return false;
    const bool is_whole = event == kind::object_end || event == kind::value;
    if (!is_whole || section_.empty()) return true;
    const bool is_of_calls = section_ == "operation_allocations";
    if (depth != (is_of_calls ? 3 : 2)) return true;
    part_(section_, name_, value);
    return false;
  }

  /// What is large and holds nothing that becomes part of a trace.
  [[nodiscard]] static bool is_unused(std::string_view section) noexcept {
    return section == "tensor_lifecycle" || section == "operation_graph";
  }

  std::FILE* file_;
  const std::filesystem::path& path_;
  handler part_;
  std::string section_;
  std::string name_;
};

/// A text in an object; empty if there is none.
[[nodiscard]] std::string session_text(const session_json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

[[nodiscard]] std::optional<double> session_number(const session_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

[[nodiscard]] std::int64_t session_count(const session_json& object, const char* key) {
  const double number = session_number(object, key).value_or(0);
  return std::isfinite(number) && std::abs(number) < static_cast<double>(most_session_bytes) ? static_cast<std::int64_t>(number)
                                                                                             : 0;
}

/// Bytes that are given as such, or else as MB of 2^20.
[[nodiscard]] std::optional<std::int64_t> session_bytes(const session_json& object, const char* bytes, const char* megabytes) {
  std::optional<double> number = session_number(object, bytes);
  if (!number) {
    number = session_number(object, megabytes);
    if (number) *number *= 1 << 20;
  }
  if (!number || !std::isfinite(*number) || std::abs(*number) > static_cast<double>(most_session_bytes)) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(*number));
}

[[nodiscard]] std::int64_t session_megabytes(const session_json& object, const char* key) {
  return session_bytes(object, "", key).value_or(0);
}

/// "2025-01-13T10:29:45.250000+00:00", with or without a fraction and an offset, as nanoseconds since 1970. A time without an
/// offset is local to a zone that the file does not name, and is taken for UTC.
[[nodiscard]] std::optional<std::int64_t> session_time(std::string_view text) {
  const auto digits = [&](std::size_t at, std::size_t count) -> std::int64_t {
    std::int64_t number = 0;
    for (std::size_t index = at; index < at + count; ++index) {
      if (index >= text.size() || text[index] < '0' || text[index] > '9') return -1;
      number = number * 10 + (text[index] - '0');
    }
    return number;
  };
  const std::array<std::int64_t, 6> parts{digits(0, 4), digits(5, 2), digits(8, 2), digits(11, 2), digits(14, 2), digits(17, 2)};
  for (const std::int64_t part : parts) {
    if (part < 0) return std::nullopt;
  }
  const auto [year, month, day, hour, minute, second] = parts;
  if (text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != ' ') || text[13] != ':' || text[16] != ':' ||
      year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
    return std::nullopt;
  // Days since 1970 of a date of the Gregorian calendar: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
  const std::int64_t shifted_year = month <= 2 ? year - 1 : year;
  const std::int64_t era = shifted_year / 400;
  const std::int64_t of_era = shifted_year - era * 400;
  const std::int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const std::int64_t days = era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
  std::int64_t nanoseconds = 0;
  std::size_t at = 19;
  if (at < text.size() && text[at] == '.') {
    std::int64_t unit = 100'000'000;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10) nanoseconds += (text[at] - '0') * unit;
  }
  std::int64_t offset_minutes = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    const std::int64_t hours = digits(at + 1, 2);
    const std::int64_t minutes = digits(at + 4, 2);
    if (hours < 0 || minutes < 0) return std::nullopt;
    offset_minutes = (text[at] == '+' ? 1 : -1) * (hours * 60 + minutes);
  } else if (at < text.size() && text[at] != 'Z') {
    return std::nullopt;
  }
  return (((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second) * 1'000'000'000 + nanoseconds;
}

/// "[65, 128]" of an array of numbers; a text as it is; else nothing.
[[nodiscard]] std::string session_shape(const session_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return {};
  if (found->is_string()) return found->get<std::string>();
  std::string text;
  for (const char letter : found->dump()) {
    text += letter;
    if (letter == ',') text += ' ';
  }
  return text;
}

[[nodiscard]] optional_category session_category(std::string_view purpose) {
  if (purpose == "weight" || purpose == "embedding") return category::parameter;
  if (purpose == "buffer" || purpose == "unknown") return category::other;
  return category_from_string(purpose);
}

[[nodiscard]] requires_grad session_requires_grad(const session_json& tensor) {
  const auto found = tensor.find("requires_grad");
  if (found == tensor.end() || !found->is_boolean()) return requires_grad::unknown;
  return found->get<bool>() ? requires_grad::yes : requires_grad::no;
}

// The threads of a trace. Those of calls follow.
constexpr std::uint32_t thread_of_tensors = 1;
constexpr std::uint32_t thread_of_log = 2;
constexpr std::uint32_t last_thread = 1 << 20;

/// The begin of an operation, or the end of the innermost one.
struct session_mark {
  std::int64_t unix_ns = 0;
  std::uint32_t thread = 0;
  const std::string* name = nullptr;  ///< null: an end
};

/// Begins and ends in the order of time, so that on each thread they nest. Two that overlap are cut to do so.
[[nodiscard]] std::vector<session_mark> marks_of(std::vector<session_span>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const session_span& left, const session_span& right) {
    if (left.thread != right.thread) return left.thread < right.thread;
    if (left.begin_unix_ns != right.begin_unix_ns) return left.begin_unix_ns < right.begin_unix_ns;
    // Of calls that begin together, the outer one ends later; entries of the log follow each other.
    return left.thread != thread_of_log && left.end_unix_ns > right.end_unix_ns;
  });
  std::vector<session_mark> marks;
  marks.reserve(2 * spans.size());
  std::vector<std::int64_t> open;  // their ends
  std::uint32_t thread = 0;
  const auto end_until = [&](std::int64_t unix_ns) {
    for (; !open.empty() && open.back() <= unix_ns; open.pop_back()) marks.push_back({open.back(), thread, nullptr});
  };
  for (const session_span& span : spans) {
    if (span.thread != thread) end_until(std::numeric_limits<std::int64_t>::max());
    thread = span.thread;
    end_until(span.begin_unix_ns);
    marks.push_back({span.begin_unix_ns, thread, &span.name});
    const std::int64_t end = std::max(span.begin_unix_ns, span.end_unix_ns);
    open.push_back(open.empty() ? end : std::min(end, open.back()));
  }
  end_until(std::numeric_limits<std::int64_t>::max());
  std::stable_sort(marks.begin(), marks.end(),
                   [](const session_mark& left, const session_mark& right) { return left.unix_ns < right.unix_ns; });
  return marks;
}

/// Writes snapshots as what has come and gone since the one before.
class session_snapshots {
 public:
  session_snapshots(trace_writer& writer, const std::filesystem::path& path) : writer_(writer), path_(path) {}

  void write(const session_json& snapshot) {
    const auto devices = snapshot.find("device_breakdown");
    std::map<std::string, device_blocks> now;
    if (devices != snapshot.end() && devices->is_object()) {
      for (const auto& [name, device] : devices->items()) read_device(name, device, now[name]);
    }
    for (auto& [name, known] : live_) free_gone(name, known, now[name]);
    for (auto& [name, blocks] : now) allocate_new(name, blocks);
    live_ = std::move(now);
    writer_.checkpoint(session_text(snapshot, "checkpoint_name"));
  }

  [[nodiscard]] bool has_unlisted() const noexcept { return has_unlisted_; }
  [[nodiscard]] bool has_contradictions() const noexcept { return has_contradictions_; }

 private:
  /// A tensor of a snapshot, or all that the snapshot does not list.
  struct block {
    std::int64_t bytes = 0;
    std::string shape;
    std::string dtype;
    std::string operation;
    std::string name;
    optional_category purpose;
    memprof::requires_grad gradient = memprof::requires_grad::unknown;
    std::uint64_t address = 0;  ///< 0: not yet allocated

    [[nodiscard]] bool is_like(const block& other) const noexcept {
      return bytes == other.bytes && shape == other.shape && dtype == other.dtype && name == other.name;
    }
  };
  /// Keyed by the file's number of a tensor; where it has none, by its place in the list.
  using device_blocks = std::map<std::int64_t, block>;

  static constexpr std::int64_t unlisted = std::numeric_limits<std::int64_t>::min();

  void read_device(const std::string& device_name, const session_json& device, device_blocks& blocks) {
    if (!device.is_object()) return;
    std::int64_t listed = 0;
    const auto tensors = device.find("tensors");
    if (tensors != device.end() && tensors->is_array()) {
      for (const session_json& tensor : *tensors) {
        if (!tensor.is_object()) continue;
        block& made = blocks[number_of(tensor, blocks.size())];
        made.bytes = std::max<std::int64_t>(session_bytes(tensor, "size_bytes", "size_mb").value_or(0), 0);
        made.shape = session_shape(tensor, "shape");
        made.dtype = session_text(tensor, "dtype");
        if (made.dtype.starts_with("torch.")) made.dtype.erase(0, std::string_view{"torch."}.size());
        made.operation = session_text(tensor, "allocated_by");
        if (made.operation.empty()) made.operation = session_text(tensor, "operation");
        if (made.operation == "unknown" || made.operation == "background") made.operation.clear();
        made.purpose = session_category(session_text(tensor, "purpose"));
        made.gradient = session_requires_grad(tensor);
        count_bytes(listed, made.bytes);
      }
    }
    const std::int64_t total = session_bytes(device, "total_bytes", "total_mb").value_or(listed);
    has_contradictions_ = has_contradictions_ || total < listed;
    if (total <= listed) return;
    has_unlisted_ = true;
    block& rest = blocks[unlisted];
    rest.bytes = total - listed;
    rest.name = "tensors of " + device_name + " that the file does not list";
  }

  /// Adds to a sum, which the file may make as large as it likes.
  void count_bytes(std::int64_t& sum, std::int64_t bytes) const {
    if (bytes > std::numeric_limits<std::int64_t>::max() - sum)
      raise_about_file("read", path_, "its tensors total 2^63 bytes or more");
    sum += bytes;
  }

  [[nodiscard]] static std::int64_t number_of(const session_json& tensor, std::size_t place) {
    const auto id = tensor.find("tensor_id");
    if (id != tensor.end() && id->is_number_integer()) return id->get<std::int64_t>();
    return -1 - static_cast<std::int64_t>(place);
  }

  [[nodiscard]] space_id space_of(const std::string& device) {
    constexpr std::size_t most = any_space - 1;  // a trace has "cpu" in any case
    const auto known = spaces_.find(device);
    if (known != spaces_.end()) return known->second;
    if (spaces_.size() == most) raise_about_file("read", path_, "it has more than " + std::to_string(most) + " devices");
    return spaces_[device] = writer_.space(device, 0, false, device == "cpu" ? host_memory_name : std::string_view{});
  }

  void free_gone(const std::string& device, const device_blocks& before, device_blocks& now) {
    const space_id space = space_of(device);
    for (const auto& [number, known] : before) {
      const auto same = now.find(number);
      if (same != now.end() && same->second.is_like(known)) {
        same->second.address = known.address;
      } else {
        writer_.deallocate(space, {known.address}, static_cast<std::size_t>(known.bytes));
      }
    }
  }

  void allocate_new(const std::string& device, device_blocks& blocks) {
    const space_id space = space_of(device);
    for (auto& [number, made] : blocks) {
      if (made.address != 0) continue;
      count_bytes(allocated_, made.bytes);
      made.address = next_address_;
      next_address_ += static_cast<std::uint64_t>(made.bytes) + 1;  // an address of its own, though it may have no bytes
      std::optional<open_operation> operation;
      if (!made.operation.empty()) operation = writer_.begin_operation(made.operation);
      writer_.allocate(space, {made.address}, static_cast<std::size_t>(made.bytes), made.purpose);
      if (operation) writer_.end_operation(*operation);
      writer_.annotate({made.address}, {made.name, made.shape, made.dtype, made.purpose, made.gradient});
    }
  }

  trace_writer& writer_;
  const std::filesystem::path& path_;
  std::map<std::string, space_id> spaces_;
  std::map<std::string, device_blocks> live_;
  std::int64_t allocated_ = 0;
  std::uint64_t next_address_ = 0x1000;
  bool has_unlisted_ = false;
  bool has_contradictions_ = false;
};

}  // namespace
}  // namespace detail

bool is_session(std::FILE* file) {
  std::array<char, 4096> begin{};
  const std::size_t got = std::fread(begin.data(), 1, begin.size(), file);
  std::rewind(file);
  const std::string_view text{begin.data(), got};
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  return first != text.npos && text[first] == '{' && text.find("\"metadata\"") != text.npos &&
         text.find("\"num_snapshots\"") != text.npos;
}

session_source::session_source(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
  if (!is_session(file)) detail::raise_about_file("read", path_, "it is no profile of pie's memory profiler");
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  std::int64_t log_end = 0;
  const auto time_in = [&](const detail::session_json& value) {
    const std::optional<std::int64_t> time = detail::session_time(detail::session_text(value, "timestamp"));
    if (time) earliest = std::min(earliest, *time);
    return time.value_or(0);
  };
  detail::session_parts parts{
      file_, path_, [&](std::string_view section, std::string_view name, const detail::session_json& value) {
        if (section == "metadata" && name == "generated_by" && value.is_string()) generated_by_ = value.get<std::string>();
        if (!value.is_object()) return;
        if (section == "snapshots") {
          has_snapshot_ = true;
          (void)time_in(value);
        } else if (section == "operation_log") {
          const std::int64_t end = time_in(value);
          if (end == 0) return;
          // The first has no begin.
          spans_.push_back({detail::thread_of_log, has_log_ ? log_end : end, end, detail::session_text(value, "name")});
          log_end = end;
          has_log_ = true;
        } else if (section == "operation_allocations") {
          const std::int64_t end = time_in(value);
          calls_.push_back({std::string{name}, end, detail::session_megabytes(value, "memory_delta_mb"),
                            detail::session_bytes(value, "", "pre_total_mb").value_or(-1)});
          const std::optional<std::int64_t> begin = detail::session_time(detail::session_text(value, "begin_timestamp"));
          const std::int64_t thread = detail::session_count(value, "thread");
          if (!begin || end == 0 || thread < 0 || thread > detail::last_thread) return;
          earliest = std::min(earliest, *begin);
          spans_.push_back({detail::thread_of_log + 1 + static_cast<std::uint32_t>(thread), *begin, end, std::string{name}});
        } else if (section == "operation_summary") {
          sums_.push_back({std::string{name}, detail::session_count(value, "invocation_count"),
                           detail::session_megabytes(value, "total_memory_delta_mb"),
                           detail::session_megabytes(value, "max_memory_delta_mb")});
        } else if (section == "pytorch_operations") {
          std::string shapes = detail::session_shape(value, "input_shapes");
          // A list of shapes, which is kept without its brackets.
          if (shapes.size() > 1 && shapes.front() == '[' && shapes.back() == ']') shapes = shapes.substr(1, shapes.size() - 2);
          operators_.push_back({detail::session_text(value, "op_name"), std::move(shapes), detail::session_count(value, "count"),
                                static_cast<std::int64_t>(detail::session_number(value, "cpu_time_us").value_or(0) * 1000),
                                static_cast<std::int64_t>(detail::session_number(value, "cuda_time_us").value_or(0) * 1000),
                                detail::session_megabytes(value, "cpu_memory_mb"),
                                detail::session_megabytes(value, "cuda_memory_mb")});
        }
      }};
  damage_ = parts.read();
  if (!has_snapshot_) detail::raise_about_file("read", path_, damage_.empty() ? "it has no snapshot" : damage_);
  begin_unix_ns_ = earliest == std::numeric_limits<std::int64_t>::max() ? 0 : earliest;
  for (session_operation_call& call : calls_) call.end_ns -= call.end_ns == 0 ? 0 : begin_unix_ns_;
}

extend::capture_info session_source::info() const {
  extend::capture_info info;
  info.begin_unix_ns = begin_unix_ns_;
  return info;
}

void session_source::write_to(extend::trace_writer& writer) {
  detail::session_snapshots snapshots{writer, path_};
  const std::vector<detail::session_mark> marks = detail::marks_of(spans_);
  auto next = marks.cbegin();
  std::map<std::uint32_t, std::vector<extend::open_operation>> open;
  const auto write_marks_until = [&](std::int64_t unix_ns) {
    for (; next != marks.cend() && next->unix_ns <= unix_ns; ++next) {
      writer.at(next->unix_ns - begin_unix_ns_);
      writer.on_thread(next->thread, next->thread == detail::thread_of_log ? "operation log" : "");
      std::vector<extend::open_operation>& on_thread = open[next->thread];
      if (next->name != nullptr) {
        on_thread.push_back(writer.begin_operation(*next->name));
      } else {
        writer.end_operation(on_thread.back());
        on_thread.pop_back();
      }
    }
  };
  std::rewind(file_);
  detail::session_parts parts{file_, path_, [&](std::string_view section, std::string_view, const detail::session_json& value) {
                                if (section != "snapshots" || !value.is_object()) return;
                                const std::int64_t unix_ns =
                                    detail::session_time(detail::session_text(value, "timestamp")).value_or(begin_unix_ns_);
                                write_marks_until(unix_ns);
                                writer.at(unix_ns - begin_unix_ns_);
                                writer.on_thread(detail::thread_of_tensors, "snapshots");
                                snapshots.write(value);
                              }};
  (void)parts.read();  // the first reading has told what is wrong
  write_marks_until(std::numeric_limits<std::int64_t>::max());
  const std::vector<missing_source> missing{{"what came and went between two snapshots", "a peak is the largest snapshot"}};
  std::vector<source_limit> limits;
  if (snapshots.has_unlisted()) limits.push_back({"tensors that the file does not list are one block for each device", 1, 0});
  if (snapshots.has_contradictions())
    limits.push_back({"some totals of the file are smaller than the tensors that it lists, which are counted here", 1, 0});
  if (has_log_)
    limits.push_back({"the operation log has only the ends of operations: each begins here at the end of the one before", 1, 0});
  if (!generated_by_.starts_with("memprof"))
    limits.push_back({"a tensor of pie's is not a block: views and aliases count each time, and times are local", 1, 0});
  writer.add_facts(extend::to_table(missing));
  if (!limits.empty()) writer.add_facts(extend::to_table(limits));
  if (!sums_.empty()) writer.add_facts(extend::to_table(sums_));
  if (!calls_.empty()) writer.add_facts(extend::to_table(calls_));
  if (!operators_.empty()) writer.add_facts(extend::to_table(operators_));
}

}  // namespace memprof::inline MEMPROF_ABI
