#pragma once

#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

/// @file
/// The dimensions of a decoder from the files in which programs keep them: `run_config.json` of transformer-room, and
/// `config.json` of Hugging Face's transformers.

namespace memprof::inline MEMPROF_ABI {

/// The contents of such a file.
struct decoder_config {
  decoder_shape shape;
  /// The model to train; only Hugging Face's files describe it.
  std::optional<decoder_model> model;
  std::int64_t longest_sequence = 0;  ///< the model's maximum; 0: the file does not have it
};

/// The decoder that a JSON text describes: Hugging Face's if it has a key "model_type". For such a file, batch and sequence are
/// those of `defaults`; the other kind has all sizes. Throws `memprof::error` that names `source` and the key.
[[nodiscard]] decoder_config parse_decoder_config(std::string_view text, const decoder_shape& defaults = {},
                                                  std::string_view source = "JSON text");

}  // namespace memprof::inline MEMPROF_ABI
