#include <memprof/config.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_reader.hpp>
#include <memprof/toolkit/format/json_tree.hpp>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

nlohmann::ordered_json parse_tree(std::string_view text, const document_source& source) {
  constexpr std::size_t max_bytes = max_bytes_by_hand;
  if (text.size() > max_bytes) {
    raise_about_document(source, "it has " + std::to_string(text.size()) + " bytes, more than such a file may have (" +
                                     std::to_string(max_bytes) + ")");
  }
  json_input input{text};
  json_reader nothing{{}, source, {}, &input};
  json_events<json_reader> events{.reader = &nothing};
  if (!nlohmann::ordered_json::sax_parse(json_input_iterator{&input}, json_input_iterator{}, &events)) {
    raise_about_syntax(source, input, events);
  }

  std::vector<std::set<std::string>> open_objects;
  const auto refuse_second_keys = [&](int, nlohmann::ordered_json::parse_event_t event, nlohmann::ordered_json& value) {
    using kind = nlohmann::ordered_json::parse_event_t;
    if (event == kind::object_start) open_objects.emplace_back();
    if (event == kind::object_end) open_objects.pop_back();
    if (event == kind::key && !open_objects.back().insert(value.get<std::string>()).second) {
      raise_about_document(source, "the key " + value.dump() + " occurs twice in one object");
    }
    return true;
  };
  constexpr bool allow_exceptions = false;
  return nlohmann::ordered_json::parse(text, refuse_second_keys, allow_exceptions);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
