#pragma once

#include <memprof/config.hpp>

#include <algorithm>
#include <cstdint>

/// @file
/// What oneDNN allocates for an LSTM layer, for the backward pass and as scratch memory.
///
/// From the sources of oneDNN 3.12, the version in libtorch 2.13: `init_conf`, `set_workspace_sizes` and `set_offsets` of
/// `src/cpu/rnn/rnn_utils.{hpp,cpp}`, `init_scratchpad` of `src/cpu/rnn/ref_rnn.cpp`, and `book` of
/// `src/common/memory_tracking.hpp`. The workspace is the same for all of its kernels. Weights and scratchpad are those of its
/// reference kernels, which it uses for training in float32; in 16-bit types, and without a backward pass, it may choose
/// processor-specific kernels.

namespace memprof::inline MEMPROF_ABI::detail {

/// One direction of one layer.
struct onednn_lstm {
  std::int64_t steps;
  std::int64_t batch;
  std::int64_t features;  ///< of the input
  std::int64_t hidden;
  std::int64_t number_bytes;  ///< of the input's type; gradients are in float32

  [[nodiscard]] constexpr std::int64_t gates() const noexcept { return 4 * hidden; }
  [[nodiscard]] constexpr std::int64_t widest() const noexcept { return std::max(features, hidden); }
  /// The rows of states: below and above the layer, for each step and before the first.
  [[nodiscard]] constexpr std::int64_t states() const noexcept { return 2 * (steps + 1) * batch; }
};

/// The bytes of a matrix row: whole cache lines, plus another one if the number of elements would be a multiple of 256.
[[nodiscard]] constexpr std::int64_t onednn_row_bytes(std::int64_t numbers, std::int64_t number_bytes) noexcept {
  constexpr std::int64_t line_bytes = 64;
  const std::int64_t line = line_bytes / number_bytes;
  const std::int64_t padded = (numbers + line - 1) / line * line;
  return (padded % 256 == 0 ? padded + line : padded) * number_bytes;
}

/// The parts of one block, each of which begins on a new page.
class onednn_pages {
 public:
  static constexpr std::int64_t page_bytes = 4096;

  constexpr void add(std::int64_t part_bytes) noexcept {
    bytes_ = (bytes_ + page_bytes - 1) / page_bytes * page_bytes + part_bytes;
  }
  [[nodiscard]] constexpr std::int64_t bytes() const noexcept { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

/// What the forward pass keeps for the backward pass.
[[nodiscard]] constexpr std::int64_t onednn_workspace_bytes(const onednn_lstm& layer) noexcept {
  constexpr std::int64_t float_bytes = sizeof(float);
  const std::int64_t cells = layer.steps * layer.batch;
  const std::int64_t states = layer.states();
  onednn_pages parts;
  parts.add(cells * onednn_row_bytes(layer.gates(), layer.number_bytes));    // gates
  parts.add(cells * onednn_row_bytes(layer.hidden, layer.number_bytes));     // outputs, for projections
  parts.add(states * onednn_row_bytes(layer.widest(), layer.number_bytes));  // hidden states
  parts.add(states * layer.hidden * layer.number_bytes);                     // cell states
  parts.add(states * onednn_row_bytes(layer.widest(), float_bytes));         // gradients of what comes from the layer below
  parts.add(states * onednn_row_bytes(layer.widest(), float_bytes));         // ... of hidden states
  parts.add(states * layer.hidden * float_bytes);                            // ... of cell states
  parts.add(0);                                                              // for other cells; the page ends
  return parts.bytes();
}

enum class onednn_pass : std::uint8_t {
  training,   ///< forward, with a workspace
  inference,  ///< forward, with the states in the scratchpad
  backward
};

[[nodiscard]] constexpr std::int64_t onednn_scratchpad_bytes(const onednn_lstm& layer, onednn_pass pass) noexcept {
  constexpr std::int64_t float_bytes = sizeof(float);
  constexpr std::int64_t max_merged = 127;  // sequences, whose steps the forward pass computes at once
  constexpr std::int64_t alignment = 128;   // the room for it, per booked entry
  constexpr std::int64_t pointer_bytes = 8;
  const bool is_backward = pass == onednn_pass::backward;
  const std::int64_t merged_steps = is_backward || layer.batch <= max_merged ? layer.steps : 1;
  onednn_pages parts;
  if (pass == onednn_pass::inference) {
    parts.add(layer.states() * onednn_row_bytes(layer.widest(), layer.number_bytes));
    parts.add(layer.states() * layer.hidden * layer.number_bytes);
  }
  parts.add(merged_steps * layer.batch * onednn_row_bytes(layer.gates(), is_backward ? layer.number_bytes : float_bytes));
  parts.add(layer.batch * onednn_row_bytes(layer.hidden, layer.number_bytes));
  if (pass != onednn_pass::inference) parts.add(layer.batch * onednn_row_bytes(layer.hidden, float_bytes));
  parts.add(0);
  // Also pointers to three weight matrices and, as many as a number has bytes, to the bias.
  return parts.bytes() + onednn_pages::page_bytes + 3 * (pointer_bytes + alignment) + layer.number_bytes * pointer_bytes +
         alignment;
}

/// A weight matrix with a row for each input, as the forward pass reads it and the backward pass writes its gradient. A single
/// row is not padded.
[[nodiscard]] constexpr std::int64_t onednn_rows_of_inputs(std::int64_t inputs, std::int64_t hidden,
                                                           std::int64_t number_bytes) noexcept {
  return inputs == 1 ? 4 * hidden * number_bytes : inputs * onednn_row_bytes(4 * hidden, number_bytes);
}
/// The same with a row for each gate, as libtorch stores it and the backward pass reads it.
[[nodiscard]] constexpr std::int64_t onednn_rows_of_gates(std::int64_t inputs, std::int64_t hidden,
                                                          std::int64_t number_bytes) noexcept {
  return 4 * hidden * onednn_row_bytes(inputs, number_bytes);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
