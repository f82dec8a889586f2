#include "family.hpp"

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace unseen {

namespace {

// --- recurrent --------------------------------------------------------------------------------------------------------

void lstm_language_model() {
  nn::Embedding tokens(2000, 128);
  nn::LSTM lstm(nn::LSTMOptions(128, 256).num_layers(2).dropout(0.1));
  nn::Linear head(256, 2000);
  train(nn::ModuleList(tokens, lstm, head), [&] {
    const Tensor y = std::get<0>(lstm->forward(tokens(labels(2000, {35, 16}))));
    return sequence_loss(head(y), labels(2000, {35, 16}));
  });
}

void gru_attention() {
  nn::Embedding words(500, 64);
  nn::GRU reader(nn::GRUOptions(64, 128).batch_first(true));
  nn::GRU writer(nn::GRUOptions(64, 128).batch_first(true));
  nn::Linear head(256, 500);
  train(nn::ModuleList(words, reader, writer, head), [&] {
    const auto [seen, state] = reader(words(labels(500, {8, 30})));
    const Tensor made = std::get<0>(writer(words(labels(500, {8, 20})), state));
    const Tensor weights = torch::softmax(torch::bmm(made, seen.transpose(1, 2)), -1);
    return sequence_loss(head(torch::cat({made, torch::bmm(weights, seen)}, -1)), labels(500, {8, 20}));
  });
}

void packed_tagger() {
  nn::Embedding words(2000, 64);
  nn::LSTM lstm(nn::LSTMOptions(64, 128).bidirectional(true).batch_first(true));
  nn::Linear head(256, 10);
  train(nn::ModuleList(words, lstm, head), [&] {
    const auto packed =
        nn::utils::rnn::pack_padded_sequence(words(labels(2000, {8, 40})), torch::tensor({40, 38, 30, 30, 20, 10, 9, 1}), true);
    return classification_loss(head(std::get<0>(lstm->forward_with_packed_input(packed)).data()), 10);
  });
}

void state_space() {
  nn::Linear inputs(128, 256);
  nn::Linear head(128, 10);
  train(nn::ModuleList(inputs, head), [&] {
    const auto parts = inputs(torch::randn({16, 64, 128})).chunk(2, -1);
    const Tensor decay = torch::sigmoid(parts[0]);
    Tensor state = torch::zeros({16, 128});
    std::vector<Tensor> states;
    for (std::int64_t t = 0; t < 64; ++t) {
      state = decay.select(1, t) * state + parts[1].select(1, t);
      states.push_back(state);
    }
    return classification_loss(head(torch::stack(states, 1).mean(1)), 10);
  });
}

/// A layer of Mamba: what the state keeps and takes up depends on the input.
void selective_scan() {
  constexpr std::int64_t batch = 4;
  constexpr std::int64_t length = 48;
  constexpr std::int64_t width = 128;
  constexpr std::int64_t states = 16;
  nn::Embedding tokens(1000, 64);
  nn::Linear inputs(64, 2 * width);
  nn::Conv1d local(nn::Conv1dOptions(width, width, 4).padding(3).groups(width));
  nn::Linear chosen(nn::LinearOptions(width, 8 + 2 * states).bias(false));
  nn::Linear pace(8, width);
  nn::Linear outputs(width, 64);
  nn::Linear head(64, 1000);
  const Tensor logarithms = torch::arange(1, states + 1, torch::kFloat).log().repeat({width, 1}).requires_grad_();
  const Tensor direct = torch::ones({width}).requires_grad_();
  train(nn::ModuleList(tokens, inputs, local, chosen, pace, outputs, head),
        [&] {
          const Tensor x = tokens(labels(1000, {batch, length}));
          const auto parts = inputs(x).chunk(2, -1);
          const Tensor u = torch::silu(local(parts[0].transpose(1, 2)).slice(2, 0, length).transpose(1, 2));
          const auto selected = chosen(u).split_with_sizes({8, states, states}, -1);
          const Tensor delta = fn::softplus(pace(selected[0])).unsqueeze(-1);
          const Tensor kept = torch::exp(delta * -torch::exp(logarithms));
          const Tensor taken = delta * selected[1].unsqueeze(2) * u.unsqueeze(-1);
          Tensor state = torch::zeros({batch, width, states});
          std::vector<Tensor> made;
          for (std::int64_t t = 0; t < length; ++t) {
            state = kept.select(1, t) * state + taken.select(1, t);
            made.push_back(torch::einsum("bdn,bn->bd", {state, selected[2].select(1, t)}));
          }
          const Tensor y = (torch::stack(made, 1) + u * direct) * torch::silu(parts[1]);
          return sequence_loss(head(x + outputs(y)), labels(1000, {batch, length}));
        },
        {logarithms, direct});
}

/// Words in groups by how frequent they are: which parts of the head a batch needs depends on its words.
void adaptive_softmax() {
  nn::Embedding tokens(8000, 96);
  nn::LSTM lstm(nn::LSTMOptions(96, 160).proj_size(96));
  nn::AdaptiveLogSoftmaxWithLoss head(nn::AdaptiveLogSoftmaxWithLossOptions(96, 8000, {1000, 4000}));
  train(nn::ModuleList(tokens, lstm, head), [&] {
    const Tensor y = std::get<0>(lstm->forward(tokens(labels(8000, {30, 12}))));
    return -head(y.reshape({-1, 96}), labels(8000, {360})).output.mean();
  });
}

/// A tagger whose tags are seen together: the sum over all ways through them.
void random_field() {
  constexpr std::int64_t tags = 24;
  nn::Embedding words(3000, 96);
  nn::LSTMCell cell(96, 128);
  nn::LayerNorm norm(nn::LayerNormOptions({128}));
  nn::Linear head(128, tags);
  const Tensor changes = parameter({tags, tags});
  train(nn::ModuleList(words, cell, norm, head),
        [&] {
          const Tensor text = words(labels(3000, {32, 24}));
          const Tensor gold = labels(tags, {32, 24});
          auto state = std::make_tuple(torch::zeros({24, 128}), torch::zeros({24, 128}));
          Tensor all;
          Tensor score = torch::zeros({24});
          for (std::int64_t t = 0; t < 32; ++t) {
            state = cell(text[t], state);
            const Tensor now = head(norm(std::get<0>(state)));
            score = score + now.gather(1, gold[t].unsqueeze(1)).squeeze(1);
            if (t > 0) score = score + changes.index({gold[t - 1], gold[t]});
            all = t == 0 ? now : torch::logsumexp(all.unsqueeze(2) + changes.unsqueeze(0) + now.unsqueeze(1), 1);
          }
          return (torch::logsumexp(all, 1) - score).mean();
        },
        {changes});
}

// --- convolutions -----------------------------------------------------------------------------------------------------

void wavenet() {
  nn::ModuleList layers;
  for (const std::int64_t dilation : {1, 2, 4, 8}) layers->push_back(nn::Conv1d(nn::Conv1dOptions(32, 64, 2).dilation(dilation)));
  nn::Conv1d head(32, 16, 1);
  train(nn::ModuleList(layers, head), [&] {
    Tensor x = torch::randn({8, 32, 512});
    for (std::size_t layer = 0; layer < layers->size(); ++layer) {
      const Tensor padded = torch::constant_pad_nd(x, {std::int64_t{1} << layer, 0});
      x = x + torch::glu(layers[layer]->as<nn::Conv1d>()->forward(padded), 1);
    }
    return fn::cross_entropy(head(x), labels(16, {8, 512}));
  });
}

/// Causal and dilated, with normalized weights.
void temporal_convolutions() {
  constexpr std::int64_t width = 48;
  std::vector<Tensor> directions;
  std::vector<Tensor> lengths;
  for (std::int64_t layer = 0; layer < 6; ++layer) {
    directions.push_back(parameter({width, layer == 0 ? 2 : width, 3}));
    lengths.push_back(torch::ones({width, 1, 1}).requires_grad_());
  }
  nn::Conv1d shortcut(2, width, 1);
  nn::Linear head(width, 1);
  std::vector<Tensor> parameters = directions;
  parameters.insert(parameters.end(), lengths.begin(), lengths.end());
  train(
      nn::ModuleList(shortcut, head),
      [&] {
        Tensor x = torch::randn({16, 2, 300});
        for (std::size_t block = 0; block < 3; ++block) {
          const std::int64_t dilation = std::int64_t{1} << block;
          Tensor y = x;
          for (const std::size_t layer : {2 * block, 2 * block + 1}) {
            const Tensor weight = torch::_weight_norm(directions[layer], lengths[layer]);
            y = torch::conv1d(y, weight, {}, 1, 2 * dilation, dilation).slice(2, 0, 300).contiguous();
            y = torch::dropout(torch::relu(y), 0.1, true);
          }
          x = torch::relu(y + (block == 0 ? shortcut(x) : x));
        }
        return torch::mse_loss(head(x.select(2, -1)), torch::randn({16, 1}));
      },
      parameters);
}

void speech() {
  nn::Conv1d body(nn::Conv1dOptions(40, 128, 5).stride(2));
  nn::Linear head(128, 29);
  train(nn::ModuleList(body, head), [&] {
    const Tensor x = torch::log_softmax(head(torch::relu(body(torch::randn({32, 40, 203}))).permute({2, 0, 1})), -1);
    return torch::ctc_loss(x, labels(28, {32, 20}) + 1, torch::full({32}, 100, torch::kLong),
                           torch::full({32}, 20, torch::kLong));
  });
}

}  // namespace

std::vector<family> sequences() {
  return {{"LSTM language model", lstm_language_model},
          {"GRU with attention", gru_attention},
          {"packed bidirectional LSTM", packed_tagger},
          {"state-space scan", state_space},
          {"selective scan (Mamba-like)", selective_scan},
          {"WaveNet", wavenet},
          {"TCN", temporal_convolutions},
          {"CTC speech", speech},
          {"LSTM with projections, adaptive softmax", adaptive_softmax,
           "its words are drawn after large weights, whose numbers are not drawn: other words, in other groups of the head"},
          {"conditional random field", random_field}};
}

}  // namespace unseen
