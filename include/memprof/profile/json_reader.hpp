#pragma once

#include <memprof/detail/vector.hpp>
#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_events.hpp>
#include <memprof/profile/json_types.hpp>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

/// @file
/// The part of `profile/json.hpp` that reads values. Every error names the source and the place in it.

namespace memprof::inline MEMPROF_ABI::detail {

/// Stores a document's values in structs as a parser delivers them. It needs no memory beyond that of the structs and time
/// proportional to the document; the first value that does not fit ends the reading.
///
/// Until the document has declared its format and version, a wrong value is only remembered: a different format or a newer
/// version explains more.
class json_reader {
 public:
  /// Without a type in `root`, everything is skipped. `input` supplies byte offsets for errors; null if the values do not come
  /// from text.
  json_reader(json_target root, const document_source& source, const json_rules& rules, const json_input* input = nullptr)
      : root_{root}, source_{source}, rules_{rules}, input_{input} {}

  void take(const json_value& value) {
    if (depth_ == 1 && slot_ != key_slot::field) return take_envelope(value);
    if (!is_reading()) return;
    const json_target target = next_target();
    if (target.type == nullptr) return;
    const bool fits = target.type->assign != nullptr && target.type->assign(target.object, value);
    if (!fits) complain_about(value, target.type->expected());
  }

  /// Begins an array or object.
  void open(json_kind kind) {
    constexpr std::size_t most = 100;
    if (depth_ == most) {
      raise_about_document(source_, "nested deeper than " + std::to_string(most) + " levels" + byte_text(kind));
    }
    if (depth_ == 1 && slot_ != key_slot::field) return take_envelope({.kind = kind});
    if (is_reading()) enter(kind);
    ++depth_;
  }

  /// Ends the array or object begun last.
  void close() {
    if (is_reading()) {
      if (open_.back().target.type->is_object()) require_fields();
      if (is_reading()) open_.pop_back();
    }
    --depth_;
  }

  void name(std::string_view key) {
    if (depth_ == 1 && !rules_.format.empty()) {
      slot_ = key == "format" ? key_slot::format : key == "version" ? key_slot::version : key_slot::field;
      if (slot_ != key_slot::field) return;
    }
    if (!is_reading()) return;
    open_value& object = open_.back();
    const auto fields = object.target.type->fields;
    if (object.target.type->member != nullptr) {
      object.key = key;
      object.next = object.target.type->member(object.target.object, key);
      if (object.next.type == nullptr)
        add_error(pointer() + " occurs twice, out of order, or is one too many" + byte_text(json_kind::string));
      return;
    }
    object.position = 0;
    while (object.position < fields.size() && fields[object.position].name != key) ++object.position;
    if (object.position == fields.size()) {
      if (rules_.refuses_unknown_keys) complain_about_key(key);
      return;
    }
    const std::uint64_t bit = std::uint64_t{1} << object.position;
    if ((object.seen & bit) != 0) return add_error(pointer() + " occurs twice" + byte_text(json_kind::string));
    object.seen |= bit;
  }

  /// Value of the document's key "version"; 0 until it is known.
  [[nodiscard]] std::int64_t version() const noexcept { return version_; }

  /// Call after the last value.
  void finish() const {
    if (!is_format_known_) {
      raise_about_document(
          source_, "/format is missing: it does not hold " + std::string{source_.what} + "; " + std::string{source_.remedy});
    }
    if (!is_version_known_) raise_about_document(source_, "/version is missing");
    if (!fault_.empty()) raise_about_document(source_, fault_);
  }

 private:
  /// An open array or object whose values are read.
  struct open_value {
    json_target target;
    std::size_t position = 0;  ///< in an object: the field that the last key named; in an array: the number of elements
    std::uint64_t seen = 0;    ///< in an object: one bit for each field seen
    std::string key = {};      ///< in an object with arbitrary keys: the last key, and below where its value goes
    json_target next = {};
  };

  /// What the last key of the outermost object named.
  enum class key_slot : std::uint8_t { field, format, version };

  /// False inside a skipped value: what it opens is not in `open_`.
  [[nodiscard]] bool is_reading() const noexcept { return open_.size() == depth_; }

  [[nodiscard]] json_target next_target() {
    if (open_.empty()) return root_;
    open_value& parent = open_.back();
    if (parent.target.type->is_array()) {
      ++parent.position;
      return parent.target.type->append(parent.target.object);
    }
    if (parent.target.type->member != nullptr) return parent.next;
    const auto fields = parent.target.type->fields;
    if (parent.position == fields.size()) return {};
    const json_field& field = fields[parent.position];
    return {field.type, field.of(parent.target.object)};
  }

  void enter(json_kind kind) {
    const json_target target = next_target();
    if (target.type == nullptr) return;
    const bool fits = kind == json_kind::array ? target.type->is_array() : target.type->is_object();
    if (!fits) return complain_about({.kind = kind}, target.type->expected());
    open_.push_back({.target = target});
  }

  /// Takes the value of "format" or "version".
  void take_envelope(const json_value& value) {
    const bool is_format = slot_ == key_slot::format;
    const std::string place = is_format ? "/format" : "/version";
    bool& is_known = is_format ? is_format_known_ : is_version_known_;
    if (is_known) raise_about_document(source_, place + " occurs twice" + byte_text(value.kind));
    is_known = true;
    if (is_format) {
      if (value.kind == json_kind::string && value.text == rules_.format) return;
      raise_about_document(source_, unexpected_text(place, value, '"' + std::string{rules_.format} + '"'));
    }
    if (!assign_value(version_, value)) {
      raise_about_document(source_, unexpected_text(place, value, json_noun<std::int64_t>()));
    }
    if (version_ >= rules_.oldest_version && version_ <= rules_.version) return;
    const std::string oldest =
        rules_.oldest_version == rules_.version ? "" : "s " + std::to_string(rules_.oldest_version) + " to";
    raise_about_document(source_,
                         "/version is " + std::to_string(version_) + ", and this memprof reads version" + oldest + ' ' +
                             std::to_string(rules_.version) +
                             (version_ > rules_.version ? ": read it with a newer memprof" : ": there is no such version"));
  }

  /// Called at the end of the innermost object.
  void require_fields() {
    open_value& object = open_.back();
    const auto fields = object.target.type->fields;
    for (object.position = 0; object.position < fields.size(); ++object.position) {
      const bool is_missing = fields[object.position].is_required && (object.seen >> object.position & 1) == 0;
      if (is_missing) return add_error(pointer() + " is missing" + byte_text(json_kind::object));
    }
  }

  /// JSON pointer to the value being read (RFC 6901).
  [[nodiscard]] std::string pointer() const {
    std::string text;
    for (const open_value& part : open_) {
      const json_type& type = *part.target.type;
      text += '/';
      text += type.is_array()          ? std::to_string(part.position - 1)
              : type.member != nullptr ? part.key
                                       : std::string{type.fields[part.position].name};
    }
    return text;
  }

  /// " (byte 57)": where the last value of that kind ends.
  [[nodiscard]] std::string byte_text(json_kind kind) const {
    if (input_ == nullptr || input_->taken() < 2) return {};
    // The parser learns that a number has ended only from the character after it.
    const bool is_number = kind == json_kind::integer || kind == json_kind::natural || kind == json_kind::real;
    return " (byte " + std::to_string(input_->taken() - (is_number ? 2 : 1)) + ")";
  }

  [[nodiscard]] std::string unexpected_text(const std::string& place, const json_value& found,
                                            const std::string& expected) const {
    return (place.empty() ? "the document" : place) + " must be " + expected + ", not " + json_text(found) +
           byte_text(found.kind);
  }

  /// Raises an error; or, until format and version are known, remembers the fault and reads on only for those two.
  void add_error(const std::string& fault) {
    if (depth_ == 0 || (is_format_known_ && is_version_known_)) raise_about_document(source_, fault);
    fault_ = fault;
    open_.clear();
  }

  void complain_about(const json_value& found, const std::string& expected) {
    add_error(unexpected_text(pointer(), found, expected));
  }

  void complain_about_key(std::string_view key) {
    const json_type& type = *open_.back().target.type;
    std::string known;
    for (const json_field& field : type.fields) known += ' ' + std::string{field.name};
    const json_value shown{.kind = json_kind::string, .text = key};
    open_.pop_back();
    add_error(pointer() + ": the key " + json_text(shown) + " means nothing here; known are" + known +
              byte_text(json_kind::string));
  }

  json_target root_;
  document_source source_;
  json_rules rules_;
  const json_input* input_;
  vector<open_value> open_;
  std::size_t depth_ = 0;  ///< number of open arrays and objects, including skipped ones
  key_slot slot_ = key_slot::field;
  bool is_format_known_ = false;
  bool is_version_known_ = false;
  std::int64_t version_ = 0;
  std::string fault_;  ///< found before format and version were known; empty: none
};

[[noreturn]] inline void raise_about_syntax(const document_source& source, const json_input& input,
                                            const json_events<json_reader>& events) {
  const std::size_t offset = events.fault_position == 0 ? 0 : events.fault_position - 1;
  const bool is_truncated = input.at_end() && offset >= input.taken();
  const std::string place = "invalid JSON at byte " + std::to_string(offset) + ": ";
  raise_about_document(source, (input.taken() == 0 && input.at_end() ? "it is empty"
                                : is_truncated ? "it is cut off after " + std::to_string(input.taken()) + " bytes"
                                               : place + std::string{events.fault}) +
                                   "; " + std::string{source.remedy});
}

/// Reads a document into a struct and returns its version.
template <reflected T>
std::int64_t read_document(json_input& input, const document_source& source, const json_rules& rules, T& target) {
  json_reader reader{{&json_type_of<T>, &target}, source, rules, &input};
  json_events<json_reader> events{.reader = &reader, .input = &input};
  const bool is_json = nlohmann::ordered_json::sax_parse(json_input_iterator{&input}, json_input_iterator{}, &events);
  if (!is_json) raise_about_syntax(source, input, events);
  reader.finish();
  return reader.version();
}

/// Feeds a value in memory to a reader, like a parser. The reader limits the depth.
inline void walk(const nlohmann::ordered_json& value, json_reader& reader) {
  using kind = nlohmann::ordered_json::value_t;
  switch (value.type()) {
    case kind::object:
      reader.open(json_kind::object);
      for (const auto& member : value.items()) {
        reader.name(member.key());
        walk(member.value(), reader);
      }
      return reader.close();
    case kind::array:
      reader.open(json_kind::array);
      for (const auto& element : value) walk(element, reader);
      return reader.close();
    case kind::boolean: return reader.take({.kind = json_kind::boolean, .truth = value.get<bool>()});
    case kind::number_integer: {
      const auto number = value.get<std::int64_t>();
      if (number < 0) return reader.take({.kind = json_kind::integer, .integer = number});
      return reader.take({.kind = json_kind::natural, .natural = static_cast<std::uint64_t>(number)});
    }
    case kind::number_unsigned: return reader.take({.kind = json_kind::natural, .natural = value.get<std::uint64_t>()});
    case kind::number_float: return reader.take({.kind = json_kind::real, .real = value.get<double>()});
    case kind::string: return reader.take({.kind = json_kind::string, .text = value.get_ref<const std::string&>()});
    case kind::null:
    case kind::binary:
    case kind::discarded: break;
  }
  reader.take({.kind = json_kind::null});
}

}  // namespace memprof::inline MEMPROF_ABI::detail
