#include "option_values.hpp"

#include <memprof/detail/nearest_name.hpp>
#include <memprof/detail/parse_double.hpp>
#include <memprof/report/text/text_format.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>
#include <system_error>
#include <utility>

namespace memprof_tool {
namespace {

constexpr std::string_view choices_mark = "one of: ";

std::string quoted_value(std::string_view text) { return "'" + memprof::detail::on_one_line(text) + "'"; }

/// "a whole number from 60 to 1000"
std::string range_text(std::int64_t least, std::int64_t most) {
  if (most != std::numeric_limits<std::int64_t>::max())
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  if (least == 0) return "0 or a positive whole number";
  return least == 1 ? "a positive whole number" : "a whole number of at least " + std::to_string(least);
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto fault_of = [least, most](const std::string& text) -> std::string {
    const std::string_view digits = std::string_view{text}.substr(text.starts_with('-') ? 1 : 0);
    const bool has_leading_zero = digits.size() > 1 && digits.front() == '0';
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_whole = end == text.data() + text.size() && !has_leading_zero;
    if (is_whole && fault == std::errc::result_out_of_range && !text.starts_with('-') &&
        most == std::numeric_limits<std::int64_t>::max())
      return quoted_value(text) + " is too large";
    if (is_whole && fault == std::errc{} && value >= least && value <= most) return {};
    return quoted_value(text) + " is not " + range_text(least, most);
  };
  return {fault_of, ""};
}

CLI::Validator decimal_number() {
  return {[](const std::string& text) {
            double value = 0;
            const auto [end, fault] = memprof::detail::parse_double(text, value);
            const bool is_number = fault == std::errc{} && end == text.data() + text.size();
            return is_number ? std::string{} : quoted_value(text) + " is not a number";
          },
          ""};
}

CLI::Validator one_of(const std::string& kind, std::vector<std::string> names) {
  // CLI11 shows a validator's description in the help, but not its name: `choices_of` reads that.
  std::string joined{choices_mark};
  for (const std::string& name : names) joined += name + ' ';
  const auto fault_of = [kind, names = std::move(names)](const std::string& text) -> std::string {
    if (std::find(names.begin(), names.end(), text) != names.end()) return {};
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    std::string fault = "unknown " + kind + " " + quoted_value(text);
    const std::string meant = suggestion(text, names);
    if (meant.empty()) return fault + "; " + kind + "s: " + all;
    std::string title = kind;
    title.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(title.front())));
    return fault + meant + " " + title + "s: " + all;
  };
  CLI::Validator result{fault_of, ""};
  result.name(joined);
  return result;
}

std::vector<std::string> choices_of(CLI::Option& option) {
  std::vector<std::string> choices;
  try {
    const std::string name = option.get_validator(0)->get_name();
    if (!name.starts_with(choices_mark)) return {};
    std::istringstream words{name.substr(choices_mark.size())};
    for (std::string word; words >> word;) choices.push_back(word);
  } catch (const CLI::OptionNotFound&) {  // it accepts anything
  }
  return choices;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  constexpr std::size_t most_apart = 2;
  const std::vector<std::string_view> known{names.begin(), names.end()};
  const std::string_view nearest = memprof::detail::nearest_name(word, known);
  const std::size_t apart = memprof::detail::letters_apart(word, nearest);
  // In a short word, two letters are most of it.
  if (nearest.empty() || apart > most_apart || 2 * apart > word.size()) return {};
  return "; did you mean '" + std::string{nearest} + "'?";
}

}  // namespace memprof_tool
