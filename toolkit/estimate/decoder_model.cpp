#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/exact_count.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

const named_decoder& find_decoder(std::string_view name) {
  std::string known;
  for (const named_decoder& decoder : named_decoders) {
    if (decoder.name == name) return decoder;
    known += ' ' + std::string{decoder.name};
  }
  detail::raise("unknown decoder '" + std::string{name} + "'; known are" + known);
}

namespace detail {

void check(const decoder_model& model) {
  // The limits keep widths computed from these from overflowing, and walks over the layers from taking forever.
  constexpr std::int64_t most = 1'000'000'000, max_layers = 100'000;
  const auto require_in_range = [](std::int64_t value, std::int64_t least, std::int64_t greatest, std::string_view name) {
    if (value >= least && value <= greatest) return;
    raise(std::string{name} + " is " + std::to_string(value) + ", but must be from " + std::to_string(least) + " to " +
          std::to_string(greatest));
  };
  require_in_range(model.layers, 1, max_layers, "layers");
  require_in_range(model.d_model, 1, most, "d_model");
  require_in_range(model.heads, 1, most, "heads");
  require_in_range(model.kv_heads, 0, most, "kv_heads");
  require_in_range(model.mlp_width, 0, most, "mlp_width");
  require_in_range(model.vocabulary, 1, most, "vocabulary");
  require_in_range(model.positions, 0, most, "positions");
  require_in_range(model.experts, 0, 100'000, "experts");
  require_divides(model.heads, "heads", model.d_model, "d_model");
  require_divides(model.key_value_heads(), "kv_heads", model.heads, "heads");
  if (model.is_llama() && model.head_width() % 2 != 0) {
    raise("d_model " + std::to_string(model.d_model) + " and heads " + std::to_string(model.heads) +
          " make heads of odd width, which rotary positions do not support");
  }
  if (model.experts == 0) return;
  if (!model.is_llama()) raise("experts are modelled in blocks of the family llama only");
  require_in_range(model.experts_per_token, 1, model.experts, "experts_per_token");
}

}  // namespace detail

std::int64_t parameter_count(const decoder_model& model, std::int64_t seq_len) {
  detail::check(model);
  using detail::exact_count;
  const exact_count width = model.d_model, mlp = model.mlp_channels(), vocabulary = model.vocabulary;
  const exact_count qkv = exact_count{model.heads + 2 * model.key_value_heads()} * model.head_width();
  const bool has_biases = !model.is_llama();
  const auto linear = [&](exact_count inputs, exact_count outputs) {
    return inputs * outputs + (has_biases ? outputs : exact_count{0});
  };
  const exact_count norm = width * (has_biases ? 2 : 1);
  exact_count feed_forward = linear(width, model.is_llama() ? mlp * 2 : mlp) + linear(mlp, width);
  if (model.experts != 0) feed_forward = feed_forward * model.experts + width * model.experts;
  const exact_count block = norm + linear(width, qkv) + linear(width, width) + norm + feed_forward;
  exact_count count = vocabulary * width + exact_count{model.layers} * block + norm;
  if (!model.is_llama()) count = count + width * (model.positions == 0 ? seq_len : model.positions);
  if (!model.tied_output) count = count + vocabulary * width;
  return count.value();
}

}  // namespace memprof::inline MEMPROF_ABI
