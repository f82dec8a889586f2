#include "check_settings.hpp"

#include "option_values.hpp"

#include <memprof/detail/byte_size.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/analysis/check.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if MEMPROF_TOOL_TOML
#include <toml++/toml.h>
#endif

namespace memprof_tool {
namespace {

const std::vector<std::string> subject_names{"space", "segment", "operation"};

std::optional<memprof::check_subject> subject_of(std::string_view name) {
  for (const auto subject : {memprof::check_subject::space, memprof::check_subject::segment, memprof::check_subject::operation}) {
    if (name == to_string(subject)) return subject;
  }
  return std::nullopt;
}

}  // namespace

memprof::check_limit parse_limit(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::size_t equals = text.rfind('=');
  const bool has_parts = colon != text.npos && equals != text.npos && colon + 1 < equals;
  const auto subject = has_parts ? subject_of(text.substr(0, colon)) : std::nullopt;
  if (!subject) {
    memprof::detail::raise("'" + std::string{text} +
                           "' is no limit: write space:NAME=SIZE, segment:NAME=SIZE or operation:PATH=SIZE, such as "
                           "operation:model/h.0=1GiB");
  }
  return {*subject, std::string{text.substr(colon + 1, equals - colon - 1)}, memprof::parse_byte_size(text.substr(equals + 1))};
}

#if MEMPROF_TOOL_TOML
namespace {

class settings_reader {
 public:
  explicit settings_reader(const std::string& path) : path_{path} {}

  [[nodiscard]] check_settings read() {
    const std::string text = memprof::detail::read_whole_file(path_, memprof::detail::max_bytes_by_hand);
    try {
      const toml::table document = toml::parse(text);
      const toml::node* const own = document.get("check");
      if (own != nullptr && !own->is_table()) fail(*own, "write the settings of check as a table [check]");
      read_table(own == nullptr ? document : *own->as_table());
    } catch (const toml::parse_error& fault) {
      raise_at(fault.source(), std::string{fault.description()});
    }
    return std::move(settings_);
  }

 private:
  void read_table(const toml::table& table) {
    for (const auto& [key, value] : table) {
      const std::string name{key.str()};
      if (name == "peak_at_most") {
        settings_.peak = {limit({}, {}, value), true};
      } else if (name == "grow_at_most") {
        settings_.growth = {limit({}, {}, value), true};
      } else if (name == "space") {
        settings_.space = text_of(value, "the name of a memory space");
      } else if (name == "compare") {
        const std::filesystem::path baseline = text_of(value, "the path of a baseline");
        settings_.baseline = (std::filesystem::path{path_}.parent_path() / baseline).string();
      } else if (name == "tolerance") {
        read_tolerance(value);
      } else if (name == "each") {
        read_each(value);
      } else if (name == "any_program") {
        if (!value.is_boolean()) fail(value, "expected true or false");
        settings_.any_program = value.as_boolean()->get();
      } else if (name == "limit") {
        read_limits(value);
      } else {
        unknown_key(key.source(), name,
                    {"peak_at_most", "grow_at_most", "space", "compare", "tolerance", "each", "any_program", "limit"});
      }
    }
  }

  void read_limits(const toml::node& value) {
    const toml::table* const kinds = value.as_table();
    if (kinds == nullptr)
      fail(value, "write limits as tables [check.limit.space], [check.limit.segment], [check.limit.operation]");
    for (const auto& [key, limits] : *kinds) {
      const auto subject = subject_of(key.str());
      if (!subject) unknown_key(key.source(), std::string{key.str()}, subject_names);
      if (!limits.is_table())
        fail(limits, "write limits as NAME = SIZE in the table [check.limit." + std::string{key.str()} + "]");
      for (const auto& [name, size] : *limits.as_table())
        settings_.limits.push_back(limit(*subject, std::string{name.str()}, size));
    }
  }

  void read_tolerance(const toml::node& value) {
    settings_.tolerance =
        value.is_integer() ? std::to_string(value.as_integer()->get()) : text_of(value, "a tolerance such as \"1%\"");
    try {
      (void)memprof::parse_tolerance(settings_.tolerance);
    } catch (const memprof::error& fault) {
      fail(value, fault.what());
    }
  }

  void read_each(const toml::node& value) {
    const auto add = [&](const toml::node& each) {
      std::string name = text_of(each, "space, segment or operation");
      if (!subject_of(name)) fail(each, "'" + name + "' is not space, segment or operation");
      settings_.each.push_back(std::move(name));
    };
    if (value.is_array()) {
      for (const toml::node& each : *value.as_array()) add(each);
    } else {
      add(value);
    }
  }

  [[nodiscard]] memprof::check_limit limit(memprof::check_subject subject, std::string name, const toml::node& value) const {
    memprof::check_limit made{subject, std::move(name), 0, path_, static_cast<std::int64_t>(value.source().begin.line)};
    try {
      made.at_most = memprof::parse_byte_size(value.is_integer() ? std::to_string(value.as_integer()->get())
                                                                 : text_of(value, "a size such as \"24GiB\""));
    } catch (const memprof::error& fault) {
      fail(value, fault.what());
    }
    return made;
  }

  [[nodiscard]] std::string text_of(const toml::node& value, const char* expected) const {
    const auto* const words = value.as_string();
    if (words == nullptr || words->get().empty()) fail(value, "expected " + std::string{expected});
    return words->get();
  }
  [[noreturn]] void unknown_key(const toml::source_region& at, const std::string& name,
                                const std::vector<std::string>& known) const {
    std::string all;
    for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
    raise_at(at, "unknown key '" + name + "'" + suggestion(name, known) + " (keys: " + all + ")");
  }
  [[noreturn]] void fail(const toml::node& at, const std::string& what) const {
    const std::string prefix = "cannot read '" + path_ + "'";
    if (what.starts_with(prefix)) memprof::detail::raise(what);  // it already has its line
    raise_at(at.source(), what);
  }
  [[noreturn]] void raise_at(const toml::source_region& at, const std::string& what) const {
    memprof::detail::raise("cannot read '" + path_ + "': line " + std::to_string(at.begin.line) + ": " + what);
  }

  const std::string& path_;
  check_settings settings_;
};

}  // namespace

check_settings read_check_settings(const std::string& path) { return settings_reader{path}.read(); }

#else

check_settings read_check_settings(const std::string& path) {
  memprof::detail::raise("cannot read '" + path + "': this memprof was built without toml++");
}

#endif

check_settings merged(check_settings file, const check_settings& options) {
  if (options.peak.is_given) file.peak = options.peak;
  if (options.growth.is_given) file.growth = options.growth;
  if (!options.space.empty()) file.space = options.space;
  if (!options.baseline.empty()) file.baseline = options.baseline;
  if (!options.tolerance.empty()) file.tolerance = options.tolerance;
  if (!options.each.empty()) file.each = options.each;
  file.any_program |= options.any_program;
  for (const memprof::check_limit& limit : options.limits) {
    const auto is_same = [&](const memprof::check_limit& other) {
      return other.subject == limit.subject && other.name == limit.name;
    };
    const auto same = std::find_if(file.limits.begin(), file.limits.end(), is_same);
    if (same == file.limits.end()) {
      file.limits.push_back(limit);
    } else {
      *same = limit;
    }
  }
  return file;
}

}  // namespace memprof_tool
