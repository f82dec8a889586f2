#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/xla/message.hpp>
#include <memprof/toolkit/format/xla/xplane.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

namespace detail {

namespace {

/// The number in the parentheses at the end of a program's name.
[[nodiscard]] bool id_in_name(std::string_view name, std::uint64_t& id) noexcept {
  const std::size_t open = name.rfind('(');
  if (open == name.npos || !name.ends_with(')')) return false;
  const char* const end = name.data() + name.size() - 1;
  const auto [behind, fault] = std::from_chars(name.data() + open + 1, end, id);
  return fault == std::errc{} && behind == end && behind != name.data() + open + 1;
}

/// Reads an `XSpace` (openxla/xprof, xplane.proto). Only what identifies programs is read: lines of events are skipped, except
/// those with the runs on a TPU.
class xspace_reader {
 public:
  explicit xspace_reader(const protobuf_file& file) : file_(file) {}

  void read() {
    xla_message in{file_, file_.bytes(), "XSpace", true};
    while (in.next()) {
      if (in.field() == 1) read_plane(in.message("XPlane"));
      if (in.field() == 4 && host.empty() && !in.is_cut()) host = in.text();
    }
    is_cut = in.is_cut();
  }

  std::vector<xplane_program> programs;
  std::vector<xplane_runs> runs;
  std::string host;
  bool has_tpu = false;
  bool is_cut = false;
  std::string contradiction;  ///< the first contradiction; empty: none

 private:
  void read_plane(const xla_message& plane) {
    std::string_view name;
    for (xla_message in = plane; in.next();) {
      if (in.field() == 2 && !in.is_cut()) name = in.text();
    }
    if (name == "/host:metadata") read_programs(plane);
    if (name.starts_with("/device:TPU:")) {
      has_tpu = true;
      read_runs(plane, name);
    }
  }

  /// The ids of the statistics with that name, of which libtpu has used two spellings.
  struct statistics {
    std::set<std::int64_t> program;
    std::set<std::int64_t> id;
  };
  [[nodiscard]] static statistics read_statistics(xla_message in) {
    statistics found;
    while (in.next()) {
      if (in.field() != 5 || in.is_cut()) continue;
      std::int64_t key = 0;
      std::string_view name;
      for (xla_message entry = in.message("XPlane.stat_metadata"); entry.next();) {
        if (entry.field() == 1) key = entry.integer();
        if (entry.field() != 2) continue;
        for (xla_message value = entry.message("XStatMetadata"); value.next();) {
          if (value.field() == 2) name = value.text();
        }
      }
      if (name == "Hlo Proto" || name == "HLO Proto") found.program.insert(key);
      if (name == "program_id") found.id.insert(key);
    }
    return found;
  }

  void read_programs(xla_message in) {
    const statistics of_interest = read_statistics(in);
    while (in.next()) {
      if (in.field() == 4 && !in.is_cut()) read_program(in.message("XPlane.event_metadata"), of_interest);
    }
  }

  void read_program(xla_message in, const statistics& of_interest) {
    std::int64_t id = 0;
    std::string_view name;
    std::string_view bytes;
    std::uint64_t told_id = 0;
    bool is_program = false;
    bool is_told = false;
    while (in.next()) {
      if (in.field() == 1) id = in.integer();
      if (in.field() != 2) continue;
      for (xla_message value = in.message("XEventMetadata"); value.next();) {
        if (value.field() == 1) id = value.integer();
        if (value.field() == 2) name = value.text();
        if (value.field() != 5) continue;
        std::int64_t statistic = 0;
        std::string_view held;
        std::uint64_t number = 0;
        bool has_bytes = false;
        for (xla_message stat = value.message("XStat"); stat.next();) {
          if (stat.field() == 1) statistic = stat.integer();
          if (stat.field() == 3 || stat.field() == 4) number = stat.unsigned_integer();
          if (stat.field() == 6) held = stat.text(), has_bytes = true;
        }
        if (has_bytes && of_interest.program.contains(statistic)) bytes = held, is_program = true;
        if (!has_bytes && of_interest.id.contains(statistic)) told_id = number, is_told = true;
      }
    }
    if (!is_program) return;
    // The id of the entry is that of the program, except in libtpu 0.0.37, whose entries' names have the right one.
    xplane_program made;
    made.id = static_cast<std::uint64_t>(id);
    if (is_told) {
      made.id = told_id;
    } else {
      (void)id_in_name(name, made.id);
    }
    const auto [known, is_new] = programs_by_id_.try_emplace(made.id, bytes);
    if (!is_new) {
      if (known->second != bytes && contradiction.empty())
        contradiction = "two programs have the number " + std::to_string(made.id) + ": the second, at byte " +
                        std::to_string(file_.offset_of(bytes.data())) + ", is left out";
      return;
    }
    made.name = std::string{module_name(bytes)} + '(' + std::to_string(made.id) + ')';
    made.bytes = bytes;
    programs.push_back(std::move(made));
  }

  [[nodiscard]] std::string_view module_name(std::string_view program) const {
    for (xla_message in{file_, program, "HloProto"}; in.next();) {
      if (in.field() != 1) continue;
      for (xla_message module = in.message("HloModuleProto"); module.next();) {
        if (module.field() == 1) return module.text();
      }
    }
    return {};
  }

  void read_runs(xla_message plane, std::string_view plane_name) {
    std::map<std::int64_t, std::uint64_t> counts;
    std::vector<std::int64_t> order;
    for (xla_message in = plane; in.next();) {
      if (in.field() != 3) continue;
      std::string_view name;
      for (xla_message line = in.message("XLine"); line.next();) {
        if (line.field() == 2 && !line.is_cut()) name = line.text();
      }
      if (name != "XLA Modules") continue;
      for (xla_message line = in.message("XLine"); line.next();) {
        if (line.field() != 4 || line.is_cut()) continue;
        std::int64_t of = 0;
        for (xla_message happened = line.message("XEvent"); happened.next();) {
          if (happened.field() == 1) of = happened.integer();
        }
        constexpr std::size_t max_programs = 65'536;
        if (++counts[of] == 1) order.push_back(of);
        if (order.size() > max_programs) line.fail("more than " + std::to_string(max_programs) + " programs ran on one core");
      }
    }
    if (counts.empty()) return;
    std::map<std::int64_t, std::string> names;
    for (xla_message in = plane; in.next();) {
      if (in.field() != 4 || in.is_cut()) continue;
      std::int64_t key = 0;
      std::string_view name;
      for (xla_message entry = in.message("XPlane.event_metadata"); entry.next();) {
        if (entry.field() == 1) key = entry.integer();
        if (entry.field() != 2) continue;
        for (xla_message value = entry.message("XEventMetadata"); value.next();) {
          if (value.field() == 2) name = value.text();
        }
      }
      if (counts.contains(key)) names[key] = name;
    }
    for (const std::int64_t of : order) runs.push_back({std::string{plane_name}, names[of], counts[of]});
  }

  const protobuf_file& file_;
  std::unordered_map<std::uint64_t, std::string_view> programs_by_id_;
};

/// The beginning of the message in the first field of `bytes`; empty if there is none.
[[nodiscard]] std::string_view inside_first_message(std::string_view bytes) noexcept {
  std::size_t length = 1;
  while (length < bytes.size() && length < 11 && (static_cast<unsigned char>(bytes[length]) & 0x80) != 0) ++length;
  return bytes.substr(std::min(bytes.size(), length + 1));
}

}  // namespace

}  // namespace detail

xplane_kind xplane_kind_of(std::FILE* file) {
  std::array<char, 32> first{};
  const std::size_t got = std::fread(first.data(), 1, first.size(), file);
  std::rewind(file);
  const std::string_view bytes{first.data(), got};
  if (bytes.starts_with("\x83\xaf\x70\xd1\x0d\x88\x4a\x3f")) return xplane_kind::riegeli;
  if (!bytes.starts_with('\x0a')) return xplane_kind::none;
  const std::string_view inside = detail::inside_first_message(bytes);
  if (inside.starts_with('\x08') || inside.starts_with('\x12') || inside.starts_with('\x1a')) return xplane_kind::space;
  if (!inside.starts_with('\x0a')) return xplane_kind::none;
  // Empty lines of a text look like this too.
  const std::string_view name = detail::inside_first_message(inside);
  const bool is_name =
      !name.empty() && (name[0] == '_' || (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z'));
  return is_name ? xplane_kind::program : xplane_kind::none;
}

xplane_file::xplane_file(std::FILE* file, const std::filesystem::path& path)
    : mapping_(file, path), file_(mapping_.bytes(), path) {
  const xplane_kind kind = xplane_kind_of(file);
  if (kind == xplane_kind::riegeli)
    detail::raise_about_file("read", path, "it is compressed with Riegeli; pass the profile as .xplane.pb");
  if (mapping_.bytes().empty()) detail::raise_about_file("read", path, "it is empty; expected an XLA profile");
  if (kind == xplane_kind::program) {
    programs_.push_back({name_in(path), 0, mapping_.bytes()});
    (void)detail::id_in_name(programs_[0].name, programs_[0].id);
    return;
  }
  detail::xspace_reader reader{file_};
  reader.read();
  programs_ = std::move(reader.programs);
  runs_ = std::move(reader.runs);
  host_ = std::move(reader.host);
  has_tpu_ = reader.has_tpu;
  damage_ = std::move(reader.contradiction);
  if (reader.is_cut) damage_ = "it is cut off after " + std::to_string(mapping_.bytes().size()) + " bytes";
}

std::string xplane_file::fault_of(const error& fault) const {
  const std::string_view whole = fault.what();
  const std::string head = "cannot read '" + file_.path().string() + "': ";
  return std::string{whole.starts_with(head) ? whole.substr(head.size()) : whole};
}

std::string xplane_file::name_in(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  constexpr std::string_view suffix = ".hlo_proto.pb";
  if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  return name;
}

}  // namespace memprof::inline MEMPROF_ABI
