#pragma once

#include <nano_gpt/random_stream.hpp>
#include <nano_gpt/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace nano_gpt {

/// Sequences, and the token that follows each of their tokens; both are [batch, time].
struct batch {
  tensor<std::int32_t> tokens;
  tensor<std::int32_t> targets;
};

/// A text as tokens: one per character, that is, per byte, numbered in the order of their values.
class corpus {
 public:
  explicit corpus(std::string_view text);

  [[nodiscard]] std::size_t size() const { return tokens_.size(); }
  [[nodiscard]] std::size_t vocabulary_size() const { return vocabulary_.size(); }
  [[nodiscard]] const std::string& vocabulary() const { return vocabulary_; }

  /// Random sections of the text, which must be longer than `seq_len`; uninitialised if nothing is dispatched.
  [[nodiscard]] batch sample(std::size_t batch_size, std::size_t seq_len, random_stream& random,
                             const tensor_memory& memory) const;

 private:
  std::string vocabulary_;
  std::vector<std::int32_t> tokens_;
};

/// Reads the whole file. Throws `input_error` if that fails.
[[nodiscard]] std::string read_text(const std::filesystem::path& file);

/// The content of lighthouse.txt beside this file. It never changes, so neither do the numbers of a run without `--text`. Throws
/// as `read_text`.
[[nodiscard]] std::string read_default_text();

}  // namespace nano_gpt
