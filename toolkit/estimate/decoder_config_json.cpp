#include <memprof/config.hpp>
#include <memprof/profile/json_document.hpp>
#include <memprof/profile/json_types.hpp>
#include <memprof/toolkit/estimate/decoder_config_json.hpp>
#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/format/json_tree.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

constexpr document_source decoder_config_source(std::string_view name) {
  return {name, "a decoder's dimensions", "see docs/estimate.md for the files that are read"};
}

/// The object under a key, also if Weights & Biases has wrapped it: {"value": {...}}. Null if there is none.
const nlohmann::ordered_json* find_section(const nlohmann::ordered_json& document, const json_place& root, std::string_view key) {
  const auto found = document.find(key);
  if (found == document.end()) return nullptr;
  if (!found->is_object()) raise_about_document(root.source, root[key].pointer() + " must be an object");
  const auto wrapped = found->find("value");
  return wrapped != found->end() && wrapped->is_object() ? &*wrapped : &*found;
}

void refuse_unknown_keys(const nlohmann::ordered_json& object, const json_place& place, std::span<const std::string_view> known) {
  for (const auto& member : object.items()) {
    if (std::find(known.begin(), known.end(), member.key()) != known.end() || member.key().starts_with('_')) continue;
    std::string names;
    for (const std::string_view name : known) names += ' ' + std::string{name};
    raise_about_document(place.source, place[std::string_view{member.key()}].pointer() + " is unknown; known keys are" + names);
  }
}

/// The whole number under a key; nothing if it is missing or null.
std::optional<std::int64_t> find_number(const nlohmann::ordered_json& object, const json_place& place, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  const bool fits = found->is_number_integer() && (!found->is_number_unsigned() || found->get<std::uint64_t>() <= INT64_MAX);
  if (!fits) {
    raise_about_document(place.source, place[key].pointer() + " must be a whole number, not " +
                                           (found->is_primitive() ? found->dump() : std::string{found->type_name()}));
  }
  return found->get<std::int64_t>();
}

/// At least 1: a zero in a `decoder_model` would mean a default.
std::optional<std::int64_t> find_size(const nlohmann::ordered_json& object, const json_place& place, std::string_view key) {
  const std::optional<std::int64_t> number = find_number(object, place, key);
  if (number && *number < 1) {
    raise_about_document(place.source, place[key].pointer() + " is " + std::to_string(*number) + ", but must be at least 1");
  }
  return number;
}

std::int64_t size_of(const nlohmann::ordered_json& object, const json_place& place, std::string_view key) {
  const std::optional<std::int64_t> number = find_size(object, place, key);
  if (!number) raise_about_document(place.source, place[key].pointer() + " is missing");
  return *number;
}

/// Missing sections and keys get that program's defaults.
decoder_config read_run_config(const nlohmann::ordered_json& document, const json_place& root) {
  constexpr std::array<std::string_view, 7> sections{"run", "dataset", "tokenizer", "model", "train", "split", "logging"};
  constexpr std::array<std::string_view, 4> model_keys{"name", "d_model", "n_heads", "layers"};
  constexpr std::array<std::string_view, 8> train_keys{
      "epochs", "learning_rate", "batch_size", "micro_batch_size", "effective_batch_size", "seq_len", "stride", "data_fraction"};
  constexpr std::array<std::string_view, 4> tokenizer_keys{"name", "base_vocab_size", "num_special_tokens", "vocab_path"};
  refuse_unknown_keys(document, root, sections);

  decoder_config result;
  const auto read = [&](std::string_view name, std::span<const std::string_view> known, auto assign) {
    const nlohmann::ordered_json* const section = find_section(document, root, name);
    if (section == nullptr) return;
    const json_place place = root[name];
    refuse_unknown_keys(*section, place, known);
    assign([&](std::string_view key, std::int64_t& target) {
      const std::optional<std::int64_t> number = find_number(*section, place, key);
      if (number) target = *number;
      return number.has_value();
    });
  };
  decoder_shape& shape = result.shape;
  read("model", model_keys, [&](auto take) {
    take("d_model", shape.d_model);
    take("n_heads", shape.n_heads);
    take("layers", shape.layers);
  });
  read("train", train_keys, [&](auto take) {
    take("seq_len", shape.seq_len);
    // Later versions of the program divide a batch; a step then processes one micro-batch.
    (void)(take("micro_batch_size", shape.batch_size) || take("batch_size", shape.batch_size) ||
           take("effective_batch_size", shape.batch_size));
  });
  read("tokenizer", tokenizer_keys, [&](auto take) {
    take("base_vocab_size", shape.base_vocab_size);
    take("num_special_tokens", shape.num_special_tokens);
  });
  return result;
}

bool flag_of(const nlohmann::ordered_json& object, const json_place& place, std::string_view key, bool otherwise) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return otherwise;
  if (!found->is_boolean()) raise_about_document(place.source, place[key].pointer() + " must be true or false");
  return found->get<bool>();
}

void refuse_flag(const nlohmann::ordered_json& document, const json_place& root, std::string_view key) {
  if (flag_of(document, root, key, false))
    raise_about_document(root.source, root[key].pointer() + " is true, which is not modelled");
}

/// Only for gpt2; the other families share their keys.
decoder_config read_gpt2(const nlohmann::ordered_json& document, const json_place& root) {
  refuse_flag(document, root, "add_cross_attention");
  decoder_config result;
  result.longest_sequence = size_of(document, root, "n_positions");
  result.model = decoder_model{.layers = size_of(document, root, "n_layer"),
                               .d_model = size_of(document, root, "n_embd"),
                               .heads = size_of(document, root, "n_head"),
                               .mlp_width = find_size(document, root, "n_inner").value_or(0),
                               .vocabulary = size_of(document, root, "vocab_size"),
                               .positions = result.longest_sequence,
                               .tied_output = flag_of(document, root, "tie_word_embeddings", true)};
  return result;
}

decoder_config read_llama(const nlohmann::ordered_json& document, const json_place& root, bool has_experts) {
  refuse_flag(document, root, "attention_bias");
  refuse_flag(document, root, "mlp_bias");
  decoder_config result;
  result.longest_sequence = size_of(document, root, "max_position_embeddings");
  result.model = decoder_model{.family = decoder_family::llama,
                               .layers = size_of(document, root, "num_hidden_layers"),
                               .d_model = size_of(document, root, "hidden_size"),
                               .heads = size_of(document, root, "num_attention_heads"),
                               .kv_heads = find_size(document, root, "num_key_value_heads").value_or(0),
                               .mlp_width = size_of(document, root, "intermediate_size"),
                               .vocabulary = size_of(document, root, "vocab_size"),
                               .tied_output = flag_of(document, root, "tie_word_embeddings", false)};
  if (has_experts) {
    result.model->experts = size_of(document, root, "num_local_experts");
    result.model->experts_per_token = size_of(document, root, "num_experts_per_tok");
  }
  const std::int64_t head_width = find_size(document, root, "head_dim").value_or(0);
  if (head_width != 0 && (result.model->heads < 1 || head_width * result.model->heads != result.model->d_model)) {
    raise_about_document(root.source, "/head_dim " + std::to_string(head_width) +
                                          " is not hidden_size / num_attention_heads: such heads are not modelled");
  }
  return result;
}

decoder_config read_huggingface(const nlohmann::ordered_json& document, const json_place& root, const decoder_shape& defaults) {
  const auto& type = document["model_type"];
  const std::string name = type.is_string() ? type.get<std::string>() : type.dump();
  decoder_config result;
  if (name == "gpt2") {
    result = read_gpt2(document, root);
  } else if (name == "llama" || name == "mistral" || name == "mixtral") {
    result = read_llama(document, root, name == "mixtral");
  } else {
    raise_about_document(root.source, "/model_type is '" + name + "'; expected gpt2, llama, mistral or mixtral");
  }
  check(*result.model);
  result.shape = {defaults.batch_size,
                  defaults.seq_len,
                  result.model->d_model,
                  result.model->heads,
                  result.model->layers,
                  result.model->vocabulary,
                  0};
  return result;
}

}  // namespace
}  // namespace detail

decoder_config parse_decoder_config(std::string_view text, const decoder_shape& defaults, std::string_view source) {
  const detail::json_place root{detail::decoder_config_source(source)};
  const nlohmann::ordered_json document = detail::parse_tree(text, root.source);
  if (!document.is_object()) detail::raise_about_document(root.source, "the document must be an object");
  return document.contains("model_type") ? detail::read_huggingface(document, root, defaults)
                                         : detail::read_run_config(document, root);
}

}  // namespace memprof::inline MEMPROF_ABI
