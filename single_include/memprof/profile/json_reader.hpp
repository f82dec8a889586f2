#pragma once

#include <memprof/memprof.hpp>

#include <memprof/profile/json_document.hpp>
#include <memprof/profile/reflect.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// @file
/// The half of `profile/json.hpp` that reads values. Every error names the source and the place in it.

namespace memprof::detail {

/// A place inside a document, kept as a chain on the stack: the text of a JSON pointer is only made for an error.
struct json_place {
  document_source source;
  const json_place* parent = nullptr;
  std::string_view key = {};  ///< within an object
  std::size_t index = 0;      ///< within an array, if `key` is empty

  [[nodiscard]] json_place operator[](std::string_view member) const noexcept { return {source, this, member, 0}; }
  [[nodiscard]] json_place operator[](std::size_t element) const noexcept { return {source, this, {}, element}; }

  /// "/spaces/0/name"; empty for the whole document (RFC 6901).
  [[nodiscard]] std::string pointer() const {
    if (parent == nullptr) return {};
    return parent->pointer() + '/' + (key.empty() ? std::to_string(index) : std::string{key});
  }
};

/// `expected` is a noun: "a string".
[[noreturn]] inline void raise_unexpected(const json_place& place, const nlohmann::ordered_json& found,
                                          std::string_view expected) {
  constexpr std::size_t longest = 60;
  const std::string pointer = place.pointer();
  std::string text = (pointer.empty() ? std::string{"the document"} : pointer) + " must be " + std::string{expected} + ", not ";
  // The writer of nlohmann/json recurses: a hostile document could be nested deeper than the stack.
  std::string value = found.is_structured() ? "" : found.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  if (value.empty() || value.size() > longest)
    value = (found.is_structured() ? "an " : "a long ") + std::string{found.type_name()};
  raise_about_document(place.source, text + value);
}

inline void read_value(const nlohmann::ordered_json& value, const json_place& place, bool& target) {
  if (!value.is_boolean()) raise_unexpected(place, value, "true or false");
  target = value.get<bool>();
}

inline void read_value(const nlohmann::ordered_json& value, const json_place& place, std::int64_t& target) {
  constexpr std::uint64_t greatest = std::numeric_limits<std::int64_t>::max();
  // The parser makes each integer without a minus sign unsigned.
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= greatest : value.is_number_integer();
  if (!fits) raise_unexpected(place, value, "an integer of at most 63 bits and a sign");
  target = value.get<std::int64_t>();
}

inline void read_value(const nlohmann::ordered_json& value, const json_place& place, std::uint64_t& target) {
  const bool fits = value.is_number_unsigned() || (value.is_number_integer() && value.get<std::int64_t>() >= 0);
  if (!fits) raise_unexpected(place, value, "an integer of at most 64 bits without a sign");
  target = value.get<std::uint64_t>();
}

inline void read_value(const nlohmann::ordered_json& value, const json_place& place, double& target) {
  if (!value.is_number() && !value.is_null()) raise_unexpected(place, value, "a number or null");
  target = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

inline void read_value(const nlohmann::ordered_json& value, const json_place& place, std::string& target) {
  if (!value.is_string()) raise_unexpected(place, value, "a string");
  target = value.get_ref<const std::string&>();
}

template <named_enumeration E>
void read_value(const nlohmann::ordered_json& value, const json_place& place, E& target) {
  constexpr auto& names = enumeration_names<E>;
  const auto found = value.is_string() ? std::find(names.begin(), names.end(), value.get_ref<const std::string&>()) : names.end();
  if (found == names.end()) {
    std::string expected = "one of";
    for (const std::string_view name : names) expected += " \"" + std::string{name} + '"';
    raise_unexpected(place, value, expected);
  }
  target = static_cast<E>(found - names.begin());
}

template <class Element>
void read_value(const nlohmann::ordered_json& value, const json_place& place, std::vector<Element>& target);

template <reflected T>
void read_value(const nlohmann::ordered_json& value, const json_place& place, T& target) {
  if (!value.is_object()) raise_unexpected(place, value, "an object");
  for_each_field(target, [&](std::string_view name, auto& field) {
    const auto member = value.find(name);
    if (member != value.end()) return read_value(*member, place[name], field);
    const auto& later = later_fields<T>;
    if (std::find(later.begin(), later.end(), name) != later.end()) return;
    raise_about_document(place.source, place[name].pointer() + " is missing");
  });
}

template <class Element>
void read_value(const nlohmann::ordered_json& value, const json_place& place, std::vector<Element>& target) {
  if (!value.is_array()) raise_unexpected(place, value, "an array");
  target.resize(value.size());
  for (std::size_t index = 0; index < value.size(); ++index) read_value(value[index], place[index], target[index]);
}

/// Raises unless the document says that it is of this format and version.
inline void check_format(const nlohmann::ordered_json& document, const document_source& source, std::string_view format,
                         std::int64_t version) {
  const json_place root{source};
  if (!document.is_object()) raise_unexpected(root, document, "an object");
  const auto found_format = document.find("format");
  if (found_format == document.end()) {
    raise_about_document(source,
                         "/format is missing: it does not hold " + std::string{source.what} + "; " + std::string{source.remedy});
  }
  if (*found_format != format) raise_unexpected(root["format"], *found_format, '"' + std::string{format} + '"');
  const auto found_version = document.find("version");
  if (found_version == document.end()) raise_about_document(source, "/version is missing");
  std::int64_t written = 0;
  read_value(*found_version, root["version"], written);
  if (written == version) return;
  raise_about_document(source, "/version is " + std::to_string(written) + ", and this memprof reads version " +
                                   std::to_string(version) +
                                   (written > version ? ": read it with a newer memprof" : ": there never was that version"));
}

/// Raises unless every index in the profile leads to something, so that users of a profile need not check.
inline void check_references(const profile& read, const json_place& root) {
  const auto check = [&](std::int64_t index, std::size_t end, const json_place& place) {
    if (index >= -1 && index < static_cast<std::int64_t>(end)) return;
    raise_about_document(root.source, place.pointer() + " is " + std::to_string(index) +
                                          ", but must be at least -1 and less than " + std::to_string(end));
  };
  const json_place spaces = root["spaces"];
  for (std::size_t index = 0; index < read.spaces.size(); ++index) {
    const space_profile& space = read.spaces[index];
    const json_place place = spaces[index];
    const auto check_count = [&](std::size_t count, const json_place& rows) {
      if (count == read.segments.size()) return;
      raise_about_document(root.source, rows.pointer() + " has " + std::to_string(count) +
                                            " elements, but must have one for each of the " +
                                            std::to_string(read.segments.size()) + " in /segments");
    };
    check_count(space.segments.size(), place["segments"]);
    // A space whose blocks are not told on cores has no such rows.
    const json_place cores = place["cores"];
    if (!space.cores.segments.empty() || !space.cores.ranges.empty()) {
      check_count(space.cores.segments.size(), cores["segments"]);
    }
    if (!space.reserved.segments.empty()) check_count(space.reserved.segments.size(), place["reserved"]["segments"]);
    check(space.peak_segment, read.segments.size(), place["peak_segment"]);
    for (std::size_t row = 0; row < space.out_of_memory.size(); ++row) {
      check(space.out_of_memory[row].segment, read.segments.size(), place["out_of_memory"][row]["segment"]);
    }
    const json_place shortfall = place["first_shortfall"];
    check(space.first_shortfall.segment, read.segments.size(), shortfall["segment"]);
  }
  const json_place operations = root["operations"];
  for (std::size_t index = 0; index < read.operations.size(); ++index) {
    // Parents come first: walks over the tree end.
    check(read.operations[index].parent, index, operations[index]["parent"]);
  }
}

}  // namespace memprof::detail
