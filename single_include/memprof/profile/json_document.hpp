#pragma once

#include <memprof/memprof.hpp>


#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace memprof::detail {

/// Where a document comes from and what it should hold, for the messages of errors.
struct document_source {
  std::string_view name;                ///< a file, or words such as "JSON text"
  std::string_view what = "a profile";  ///< a noun
  std::string_view remedy = "write it again with memprof::write_json";
};

[[noreturn]] inline void raise_about_document(const document_source& source, const std::string& text) {
  raise("cannot read " + std::string{source.what} + " from '" + std::string{source.name} + "': " + text);
}

/// Finds where a text stops being JSON. The parser's own exceptions would tell, but not in a program built without exceptions.
struct json_fault_finder : nlohmann::json_sax<nlohmann::ordered_json> {
  std::size_t offset = 0;  ///< of the byte that cannot stand where it stands; the text's size if more is needed
  std::string reason;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t bytes_read, const std::string&, const nlohmann::detail::exception& fault) override {
    offset = bytes_read == 0 ? 0 : bytes_read - 1;
    reason = fault.what();
    // "[json.exception.parse_error.101] parse error at ...": the part in brackets is of no use here.
    if (const std::size_t end = reason.find("] "); end != std::string::npos) reason.erase(0, end + 2);
    return false;
  }
};

/// The document in a JSON text. An error names the byte offset.
[[nodiscard]] inline nlohmann::ordered_json parse_document(std::string_view text, const document_source& source) {
  constexpr bool allow_exceptions = false;
  nlohmann::ordered_json document = nlohmann::ordered_json::parse(text, nullptr, allow_exceptions);
  if (!document.is_discarded()) return document;
  json_fault_finder fault;
  (void)nlohmann::ordered_json::sax_parse(text, &fault);
  const bool truncated = fault.offset >= text.size();
  raise_about_document(source, (text.empty() ? "it is empty"
                                : truncated  ? "it is cut off after " + std::to_string(text.size()) + " bytes"
                                             : "it is no JSON from byte offset " + std::to_string(fault.offset) + " on") +
                                   " (" + fault.reason + "); " + std::string{source.remedy});
}

}  // namespace memprof::detail
