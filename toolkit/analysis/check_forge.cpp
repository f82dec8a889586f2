#include <memprof/config.hpp>
#include <memprof/detail/utf8.hpp>
#include <memprof/profile/json.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/report/text/text_format.hpp>
#include <memprof/toolkit/analysis/check.hpp>
#include <memprof/toolkit/analysis/check_forge.hpp>
#include <memprof/toolkit/analysis/check_text.hpp>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Text outside code, on one line, without what Markdown or HTML would interpret.
std::string escaped_for_markdown(std::string_view text) {
  constexpr std::string_view special = "\\`*_{}[]<>()#+!|~&$@";
  std::string result;
  for (const char letter : on_one_line(text)) {
    if (special.find(letter) != std::string_view::npos) result += '\\';
    result += letter;
  }
  return result;
}

std::string markdown_row(const check_condition& of) {
  const std::string over = of.has_passed() ? short_bytes(-of.over()) + " left" : "**" + short_bytes(of.over()) + " over**";
  return "| " + std::string{of.has_passed() ? "passed" : "**failed**"} + " | " + escaped_for_markdown(condition_name(of)) +
         " | " + short_bytes(of.bytes) + " | " + short_bytes(of.at_most) + " | " + over + " |\n";
}

/// Whether XML 1.0 has the character: https://www.w3.org/TR/xml/#charsets
bool is_xml_character(char32_t code) noexcept {
  return code == 0x9 || code == 0xA || code == 0xD || (code >= 0x20 && code <= 0xD7FF) || (code >= 0xE000 && code <= 0xFFFD) ||
         (code >= 0x10000 && code <= 0x10FFFF);
}

/// As the text of an element or the value of an attribute.
std::string escaped_for_xml(std::string_view text) {
  std::string result;
  for (std::size_t index = 0; index < text.size();) {
    const utf8_character character = utf8_at(text, index);
    const std::string_view bytes = text.substr(index, character.size);
    index += character.size;
    switch (character.code) {
      case U'&': result += "&amp;"; break;
      case U'<': result += "&lt;"; break;
      case U'>': result += "&gt;"; break;
      case U'"': result += "&quot;"; break;
      default:
        if (character.code == utf8_character::invalid || !is_xml_character(character.code)) {
          result += "\xEF\xBF\xBD";
        } else {
          result += bytes;
        }
    }
  }
  return result;
}

/// As the toolkit of GitHub Actions escapes a command's data and, with `is_property`, the values of its properties:
/// https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
std::string escaped_for_github(std::string_view text, bool is_property) {
  std::string result;
  for (const char letter : text) {
    switch (letter) {
      case '%': result += "%25"; break;
      case '\r': result += "%0D"; break;
      case '\n': result += "%0A"; break;
      case ':': result += is_property ? "%3A" : ":"; break;
      case ',': result += is_property ? "%2C" : ","; break;
      default: result += letter;
    }
  }
  return result;
}

/// FNV-1a, 64 bits in hexadecimal digits: http://www.isthe.com/chongo/tech/comp/fnv/
std::string fingerprint_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  std::array<char, 17> digits{};
  (void)std::snprintf(digits.data(), digits.size(), "%016" PRIx64, hash);
  return digits.data();
}

std::string path_for_gitlab(const check_report& of, const check_condition& condition) {
  std::string path = !condition.file.empty() ? condition.file : !of.baseline_file.empty() ? of.baseline_file : of.file;
  while (path.starts_with("./")) path.erase(0, 2);
  return path.empty() ? "memprof" : path;
}

}  // namespace
}  // namespace detail

std::string to_markdown(const check_report& of, std::size_t most_bytes) {
  using namespace detail;
  constexpr std::string_view cut = "\n(cut: the rest does not fit)\n";
  constexpr std::string_view heading = "\n| | condition | bytes | at most | |\n|---|---|---:|---:|---:|\n";
  std::string text;
  bool is_cut = false;
  const auto add = [&](std::string_view part) {
    is_cut = is_cut || text.size() + part.size() + cut.size() > most_bytes;
    if (!is_cut) text += part;
  };
  add("**" + escaped_for_markdown(verdict_of(of)) + "**\n");
  for (const std::string& caveat : of.caveats) add("\n" + escaped_for_markdown(caveat) + "\n");
  add(heading);
  for (const bool has_passed : {false, true}) {
    for (const check_condition& each : of.conditions) {
      if (each.has_passed() == has_passed) add(markdown_row(each));
    }
  }
  if (is_cut && cut.size() <= most_bytes) text += cut;
  return text;
}

std::string to_junit(const check_report& of) {
  using namespace detail;
  const std::string counts =
      " tests=\"" + std::to_string(of.conditions.size()) + "\" failures=\"" + std::to_string(of.failures()) + "\" errors=\"0\"";
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"memprof check\"" + counts +
                     ">\n <testsuite name=\"memprof check\"" + counts + ">\n";
  for (const check_condition& each : of.conditions) {
    text += "  <testcase classname=\"memprof." + std::string{to_string(each.reason)} + "\" name=\"" +
            escaped_for_xml(condition_name(each)) + "\"";
    if (each.has_passed()) {
      text += "/>\n";
      continue;
    }
    const std::string sentence = escaped_for_xml(condition_text(each));
    text.append(">\n   <failure type=\"memprof\" message=\"").append(sentence).append("\">").append(sentence);
    for (const std::string& caveat : of.caveats) text += "\n" + escaped_for_xml(on_one_line(caveat));
    text += "</failure>\n  </testcase>\n";
  }
  return text + " </testsuite>\n</testsuites>\n";
}

std::string to_github_annotations(const check_report& of) {
  using namespace detail;
  std::string text;
  for (const check_condition& each : of.conditions) {
    if (each.has_passed()) continue;
    text += "::error ";
    if (!each.file.empty()) {
      text += "file=" + escaped_for_github(each.file, true) + ",";
      if (each.line > 0) text += "line=" + std::to_string(each.line) + ",";
    }
    text += "title=" + escaped_for_github("memprof: " + condition_name(each), true) +
            "::" + escaped_for_github(condition_text(each), false) + "\n";
  }
  return text;
}

std::string to_gitlab_code_quality(const check_report& of) {
  nlohmann::ordered_json issues = nlohmann::ordered_json::array();
  std::map<std::string, int> same;
  for (const check_condition& each : of.conditions) {
    if (each.has_passed()) continue;
    std::string key = std::string{to_string(each.reason)} + " " + condition_name(each);
    // GitLab shows one issue of those with the same fingerprint.
    if (const int before = same[key]++; before != 0) key += " " + std::to_string(before);
    issues.push_back(
        {{"description", "memprof: " + condition_text(each)},
         {"check_name", "memprof-" + std::string{to_string(each.reason)}},
         {"fingerprint", detail::fingerprint_of(key)},
         {"severity", "major"},
         {"location",
          {{"path", detail::path_for_gitlab(of, each)}, {"lines", {{"begin", std::max<std::int64_t>(1, each.line)}}}}}});
  }
  return detail::dump(issues) + '\n';
}

}  // namespace memprof::inline MEMPROF_ABI
