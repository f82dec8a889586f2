#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string_view>

namespace torch_gpt {

/// Sequences, and the token that follows each of their tokens; both are [batch, time] of int64.
struct batch {
  at::Tensor tokens;
  at::Tensor targets;
};

/// A text as tokens, one per byte.
class token_text {
 public:
  explicit token_text(std::string_view text)
      : bytes_{at::from_blob(const_cast<char*>(text.data()), {static_cast<std::int64_t>(text.size())}, at::kByte).clone()} {}

  [[nodiscard]] std::int64_t size() const { return bytes_.numel(); }

  /// Random sections of the text, which must be longer than `seq_len`.
  [[nodiscard]] batch sample(std::int64_t batch_size, std::int64_t seq_len, at::Device device) const {
    const at::Tensor first = at::randint(size() - seq_len, {batch_size, 1}, at::kLong);
    const at::Tensor places = first + at::arange(seq_len, at::kLong);
    return {bytes_.index({places}).to(at::kLong).to(device), bytes_.index({places + 1}).to(at::kLong).to(device)};
  }

 private:
  at::Tensor bytes_;
};

}  // namespace torch_gpt
