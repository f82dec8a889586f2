#include <memprof/config.hpp>
#include <memprof/toolkit/analysis/program_name.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

std::string program_in(std::string_view command_line) {
  const auto next_word = [&] {
    const std::string_view word = command_line.substr(0, command_line.find(' '));
    command_line.remove_prefix(std::min(command_line.size(), word.size() + 1));
    return word;
  };
  const auto name_of = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  const std::string_view program = name_of(next_word());
  if (!program.starts_with("python")) return std::string{program};
  while (!command_line.empty()) {
    const std::string_view word = next_word();
    if (word == "-c") break;
    if (!word.empty() && word.front() != '-') return std::string{name_of(word)};
  }
  return std::string{program};
}

}  // namespace memprof::inline MEMPROF_ABI::detail
