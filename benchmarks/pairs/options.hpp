#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace pairs {

/// What a run of the program does; the same for every variant.
struct options {
  std::uint64_t threads = 1;
  std::uint64_t pairs = 5'000'000;  ///< of operator new and operator delete, per thread
  std::uint64_t live = 4096;        ///< the most blocks that each thread holds; a power of two
  bool hand_over = false;           ///< every block is freed by another thread than the one that allocated it
  bool capture = false;             ///< only for the variant that can capture
  const char* trace_file = "";      ///< for the same variant: where the capture writes its trace; empty: nowhere
};

/// Ends the program with status 2 if an argument is invalid.
[[nodiscard]] inline options parse(int count, char** arguments) {
  options result;
  for (int index = 1; index < count; ++index) {
    const std::string_view argument = arguments[index];
    const auto value_of = [&](std::string_view name, std::uint64_t& value) {
      if (!argument.starts_with(name)) return false;
      value = std::strtoull(arguments[index] + name.size(), nullptr, 10);
      return value != 0;
    };
    if (argument == "--hand-over") {
      result.hand_over = true;
    } else if (argument == "--capture") {
      result.capture = true;
    } else if (argument.starts_with("--trace-file=")) {
      result.trace_file = arguments[index] + std::string_view{"--trace-file="}.size();
    } else if (!value_of("--threads=", result.threads) && !value_of("--pairs=", result.pairs) &&
               !value_of("--live=", result.live)) {
      std::fprintf(stderr,
                   "%s: '%s' is not --threads=N, --pairs=N, --live=N (all from 1), --hand-over, --capture or "
                   "--trace-file=FILE\n",
                   arguments[0], arguments[index]);
      std::exit(2);
    }
  }
  if ((result.live & (result.live - 1)) != 0 || (result.hand_over && result.threads < 2)) {
    std::fprintf(stderr, "%s: --live must be a power of two, and --hand-over needs --threads=2 or more\n", arguments[0]);
    std::exit(2);
  }
  return result;
}

}  // namespace pairs
