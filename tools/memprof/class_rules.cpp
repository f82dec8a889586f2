#include "class_rules.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/analysis/hlo_attribution.hpp>
#include <memprof/toolkit/format/xla/hlo_program.hpp>
#include <memprof/trace/category.hpp>

#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#if MEMPROF_TOOL_TOML
#include <toml++/toml.h>
#endif

namespace memprof_tool {

#if MEMPROF_TOOL_TOML
namespace {

class rule_reader {
 public:
  explicit rule_reader(const std::string& path) : path_(path) {}

  [[nodiscard]] memprof::hlo_class_rules read() const {
    const std::string text = memprof::detail::read_whole_file(path_, memprof::detail::max_bytes_by_hand);
    memprof::hlo_class_rules rules = memprof::default_hlo_class_rules();
    try {
      const toml::table document = toml::parse(text);
      for (const auto& [key, value] : document) {
        if (key.str() == "gradients") {
          rules.markers = pattern(value, std::regex::icase);
        } else if (key.str() == "class") {
          read_classes(value, rules);
        } else {
          fail(value, "unknown key '" + std::string{key.str()} + "'; expected gradients or class");
        }
      }
    } catch (const toml::parse_error& fault) {
      raise_at(fault.source(), std::string{fault.description()});
    }
    return rules;
  }

 private:
  void read_classes(const toml::node& value, memprof::hlo_class_rules& rules) const {
    const toml::array* const classes = value.as_array();
    if (classes == nullptr) fail(value, "write each class as a table [[class]]");
    rules.classes.clear();
    for (const toml::node& each : *classes) {
      if (!each.is_table()) fail(each, "write each class as a table [[class]]");
      rules.classes.push_back(read_class(*each.as_table()));
    }
  }

  [[nodiscard]] memprof::hlo_class_rule read_class(const toml::table& described) const {
    memprof::hlo_class_rule made{{}, memprof::hlo_group::parameter, std::regex{""}, memprof::category::other, true};
    memprof::optional_category category;
    for (const auto& [key, value] : described) {
      if (key.str() == "name") {
        made.name = text(value);
      } else if (key.str() == "op_name") {
        made.op_name = pattern(value, {});
      } else if (key.str() == "group") {
        made.group = group(value);
      } else if (key.str() == "category") {
        category = memprof::category_from_string(text(value));
        if (!category.has_value()) fail(value, "unknown category '" + text(value) + "'");
      } else {
        fail(value, "unknown key '" + std::string{key.str()} + "' in a class; expected name, op_name, group or category");
      }
    }
    if (made.name.empty()) fail(described, "the class has no name");
    if (!category.has_value()) category = memprof::category_from_string(made.name);
    made.category = category.value_or(memprof::category::other);
    return made;
  }

  [[nodiscard]] std::string text(const toml::node& value) const {
    const auto* const words = value.as_string();
    if (words == nullptr) fail(value, "expected a string");
    return words->get();
  }
  [[nodiscard]] std::regex pattern(const toml::node& value, std::regex::flag_type flags) const {
    try {
      return std::regex{text(value), std::regex::ECMAScript | std::regex::optimize | flags};
    } catch (const std::regex_error& fault) {
      fail(value, "'" + text(value) + "' is not a valid regular expression: " + fault.what());
    }
  }
  [[nodiscard]] std::optional<memprof::hlo_group> group(const toml::node& value) const {
    using memprof::hlo_group;
    const std::string name = text(value);
    if (name == "any") return std::nullopt;
    for (const hlo_group each :
         {hlo_group::parameter, hlo_group::output, hlo_group::thread_local_memory, hlo_group::constant, hlo_group::temporary}) {
      if (name == to_string(each)) return each;
    }
    fail(value, "unknown group '" + name + "'; expected Parameter, Output, Thread-local, Constant, Temporary or any");
  }

  [[noreturn]] void fail(const toml::node& at, const std::string& what) const { raise_at(at.source(), what); }
  [[noreturn]] void raise_at(const toml::source_region& at, const std::string& what) const {
    memprof::detail::raise("cannot read '" + path_ + "': line " + std::to_string(at.begin.line) + ": " + what);
  }

  const std::string& path_;
};

}  // namespace

memprof::hlo_class_rules read_class_rules(const std::string& path) {
  return path.empty() ? memprof::default_hlo_class_rules() : rule_reader{path}.read();
}

#else

memprof::hlo_class_rules read_class_rules(const std::string& path) {
  if (!path.empty()) memprof::detail::raise("cannot read '" + path + "': this memprof was built without toml++");
  return memprof::default_hlo_class_rules();
}

#endif

}  // namespace memprof_tool
