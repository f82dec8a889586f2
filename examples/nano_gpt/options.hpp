#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace nano_gpt {

/// What the command line may set. The defaults train for some ten seconds.
struct options {
  std::size_t layers = 3;
  std::size_t heads = 4;
  std::size_t d_model = 64;
  std::size_t seq_len = 64;
  std::size_t batch_size = 16;
  std::size_t steps = 200;
  std::uint64_t seed = 1;
  std::optional<std::filesystem::path> text;  ///< without: the repository's documents
  std::optional<std::filesystem::path> json;  ///< where to write the profile
  bool help = false;
};

/// Reads the arguments after the program's name; throws `input_error` on the first that cannot be used.
[[nodiscard]] options parse_options(std::span<const char* const> arguments);

/// What `--help` prints.
[[nodiscard]] std::string usage();

/// Throws `input_error` unless the file can be opened for writing. Leaves an existing file as it is, and none behind.
void require_writable(const std::filesystem::path& file);

}  // namespace nano_gpt
