#include "family.hpp"

#include <cstdint>
#include <tuple>
#include <vector>

namespace unseen {

namespace {

// --- tables, graphs ---------------------------------------------------------------------------------------------------

void recommender() {
  nn::EmbeddingBag bags(nn::EmbeddingBagOptions(10000, 32).mode(torch::kSum));
  nn::Sequential bottom(nn::Linear(13, 32), nn::ReLU());
  nn::Linear top(33, 1);
  train(nn::ModuleList(bags, bottom, top), [&] {
    const Tensor x = bottom->forward(torch::randn({256, 13}));
    const Tensor y = bags->forward(labels(10000, {1024}), torch::arange(0, 1024, 4));
    const Tensor z = top(torch::cat({x, (x * y).sum(1, true)}, 1)).squeeze(1);
    return torch::binary_cross_entropy_with_logits(z, torch::rand({256}));
  });
}

/// The products of all pairs of features that a row has, by the square of their sum.
void factorization_machine() {
  nn::EmbeddingBag weights(nn::EmbeddingBagOptions(20000, 1).mode(torch::kSum));
  const Tensor factors = parameter({20000, 24});
  const Tensor bias = torch::zeros({1}).requires_grad_();
  train(nn::ModuleList(weights),
        [&] {
          const Tensor features = labels(20000, {512 * 20});
          const Tensor rows = torch::arange(0, 512 * 20, 20);
          const Tensor amounts = torch::rand({512 * 20});
          const auto sums = [&](const Tensor& table, const Tensor& by) {
            return std::get<0>(torch::embedding_bag(table, features, rows, false, 0, false, by));
          };
          const Tensor pairs = 0.5 * (sums(factors, amounts).square() - sums(factors.square(), amounts.square())).sum(1);
          const Tensor y = bias + weights->forward(features, rows, amounts).squeeze(1) + pairs;
          return torch::binary_cross_entropy_with_logits(y, labels(2, {512}).to(torch::kFloat));
        },
        {factors, bias});
}

/// TabNet: which columns it looks at is a projection onto a simplex, most of it zeros.
void sparse_selection() {
  constexpr std::int64_t columns = 64;
  nn::BatchNorm1d norm(columns);
  nn::Linear choice(48, columns);
  nn::Linear features(columns, 96);
  nn::BatchNorm1d after(96);
  nn::Linear head(48, 5);
  train(nn::ModuleList(norm, choice, features, after, head), [&] {
    const Tensor x = norm(torch::randn({1024, columns}));
    Tensor prior = torch::ones({1024, columns});
    Tensor chosen = torch::zeros({1024, 48});
    Tensor y = torch::zeros({1024, 48});
    for (int step = 0; step < 2; ++step) {
      const Tensor z = choice(chosen) * prior;
      const Tensor sorted = std::get<0>(z.sort(-1, true));
      const Tensor sums = sorted.cumsum(-1) - 1;
      const Tensor ranks = torch::arange(1, columns + 1).to(torch::kFloat);
      const Tensor count = (ranks * sorted > sums).sum(-1, true);
      const Tensor mask = torch::clamp_min(z - sums.gather(-1, count - 1) / count, 0);
      prior = prior * (1.3 - mask);
      const auto halves = torch::glu(after(features(mask * x)), -1);
      chosen = halves;
      y = y + torch::relu(halves);
    }
    return classification_loss(head(y), 5);
  });
}

/// The graph is a sparse matrix.
void sparse_graph() {
  nn::Linear first(96, 128);
  nn::Linear second(128, 7);
  const Tensor ends = torch::stack({labels(2000, {8000}), labels(2000, {8000})});
  const Tensor graph = torch::sparse_coo_tensor(ends, torch::full({8000}, 0.25), {2000, 2000}).coalesce();
  train(nn::ModuleList(first, second), [&] {
    const Tensor x = torch::relu(torch::mm(graph, first(torch::randn({2000, 96}))));
    return classification_loss(torch::mm(graph, second(torch::dropout(x, 0.5, true))), 7);
  });
}

void graph_convolution() {
  nn::Linear first(64, 128);
  nn::Linear second(128, 7);
  train(nn::ModuleList(first, second), [&] {
    const Tensor from = labels(2000, {8000});
    const Tensor to = labels(2000, {8000});
    const auto gathered = [&](const Tensor& x) { return torch::zeros_like(x).index_add(0, to, x.index_select(0, from)); };
    return classification_loss(gathered(second(torch::relu(gathered(first(torch::randn({2000, 64})))))), 7);
  });
}

// --- two models, or one seen twice ------------------------------------------------------------------------------------

void siamese() {
  nn::Sequential body(nn::Linear(128, 256), nn::ReLU(), nn::Linear(256, 64));
  train(nn::ModuleList(body), [&] {
    const auto embedded = [&] { return fn::normalize(body->forward(torch::randn({512, 128}))); };
    const Tensor anchor = embedded();
    const Tensor same = embedded();
    return torch::triplet_margin_loss(anchor, same, embedded());
  });
}

/// CLIP: pictures and their descriptions, each of a batch beside all others.
void pictures_and_words() {
  nn::Sequential pictures(convolution(3, 32, 3, 2), nn::BatchNorm2d(32), nn::ReLU(), convolution(32, 64, 3, 2),
                          nn::BatchNorm2d(64), nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                          nn::Linear(nn::LinearOptions(64, 96).bias(false)));
  nn::Embedding tokens(2000, 96);
  nn::TransformerEncoder body = encoder(96, 4, 2);
  const Tensor scale = torch::full({}, 2.66).requires_grad_();
  train(nn::ModuleList(pictures, tokens, body),
        [&] {
          const Tensor a = fn::normalize(pictures->forward(torch::randn({32, 3, 48, 48})));
          const Tensor b = fn::normalize(body->forward(tokens(labels(2000, {24, 32})))[-1]);
          const Tensor likeness = scale.exp() * torch::matmul(a, b.t());
          const Tensor own = torch::arange(32);
          return (fn::cross_entropy(likeness, own) + fn::cross_entropy(likeness.t(), own)) / 2;
        },
        {scale});
}

void distillation() {
  const auto classifier = [](std::int64_t width) {
    return nn::Sequential(convolution(3, width, 3), nn::BatchNorm2d(width), nn::ReLU(), convolution(width, 2 * width, 3, 2),
                          nn::BatchNorm2d(2 * width), nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(),
                          nn::Linear(2 * width, 50));
  };
  nn::Sequential teacher = classifier(48);
  nn::Sequential student = classifier(16);
  teacher->eval();
  train(nn::ModuleList(student), [&] {
    const Tensor image = torch::randn({8, 3, 32, 32});
    Tensor wanted;
    {
      const torch::NoGradGuard no_gradients;
      wanted = torch::softmax(teacher->forward(image) / 4.0, -1);
    }
    const Tensor logits = student->forward(image);
    const auto of_batch = fn::KLDivFuncOptions().reduction(torch::kBatchMean);
    return 16.0 * fn::kl_div(torch::log_softmax(logits / 4.0, -1), wanted, of_batch) + classification_loss(logits, 50);
  });
}

// --- decisions --------------------------------------------------------------------------------------------------------

void q_learning() {
  nn::Sequential policy(nn::Linear(64, 512), nn::ReLU(), nn::Linear(512, 8));
  nn::Sequential target(nn::Linear(64, 512), nn::ReLU(), nn::Linear(512, 8));
  train(nn::ModuleList(policy), [&] {
    const Tensor q = policy->forward(torch::randn({512, 64})).gather(1, labels(8, {512, 1}));
    Tensor next;
    {
      const torch::NoGradGuard no_gradients;
      next = std::get<0>(target->forward(torch::randn({512, 64})).max(1, true));
    }
    return torch::smooth_l1_loss(q, next * 0.99 + torch::rand({512, 1}));
  });
}

void policy_gradient() {
  nn::Sequential policy(nn::Linear(64, 512), nn::Tanh(), nn::Linear(512, 8));
  train(nn::ModuleList(policy), [&] {
    const Tensor chances = torch::softmax(policy->forward(torch::randn({512, 64})), -1);
    const Tensor action = torch::multinomial(chances.detach(), 1);
    return -(torch::log(chances.gather(1, action)) * torch::randn({512, 1})).mean();
  });
}

/// PPO: one collection of moves, gone through in shuffled parts, with clipped gradients.
void proximal_policy() {
  nn::Sequential body(nn::Linear(48, 256), nn::Tanh(), nn::Linear(256, 256), nn::Tanh());
  nn::Linear policy(256, 6);
  nn::Linear value(256, 1);
  const nn::ModuleList modules(body, policy, value);
  torch::optim::Adam optimizer(modules->parameters(), torch::optim::AdamOptions(3e-4).eps(1e-5));
  for (int step = 0; step < steps; ++step) {
    const Tensor seen = torch::randn({1024, 48});
    const Tensor gains = torch::randn({1024});
    Tensor moves;
    Tensor before;
    {
      const torch::NoGradGuard no_gradients;
      const Tensor chances = torch::log_softmax(policy(body->forward(seen)), -1);
      moves = torch::multinomial(chances.exp(), 1);
      before = chances.gather(1, moves).squeeze(1);
    }
    for (const Tensor& part : torch::randperm(1024, torch::kLong).split(256)) {
      const Tensor hidden = body->forward(seen.index_select(0, part));
      const Tensor chances = torch::log_softmax(policy(hidden), -1);
      const Tensor ratio = (chances.gather(1, moves.index({part})).squeeze(1) - before.index({part})).exp();
      const Tensor gain = gains.index({part});
      const Tensor won = torch::min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean();
      const Tensor doubt = -(chances.exp() * chances).sum(-1).mean();
      const Tensor loss = -won + 0.5 * (value(hidden).squeeze(1) - gain).square().mean() - 0.01 * doubt;
      optimizer.zero_grad();
      loss.backward();
      nn::utils::clip_grad_norm_(modules->parameters(), 0.5);
      optimizer.step();
    }
  }
}

// --- equations --------------------------------------------------------------------------------------------------------

void fourier_operator() {
  nn::Conv1d lift(1, 64, 1);
  nn::Linear mixed(64, 64);
  train(nn::ModuleList(lift, mixed), [&] {
    const Tensor x = lift(torch::randn({16, 1, 256}));
    const Tensor spectrum = torch::fft_rfft(x).slice(-1, 0, 16);
    const Tensor weights = torch::complex(mixed->weight, mixed->weight);
    return torch::fft_irfft(torch::einsum("bix,io->box", {spectrum, weights}), 256).square().mean();
  });
}

/// A neural differential equation, in steps of Runge and Kutta.
void differential_equation() {
  nn::Sequential slope(nn::Linear(33, 128), nn::Tanh(), nn::Linear(128, 32));
  nn::Linear head(32, 10);
  train(nn::ModuleList(slope, head), [&] {
    const auto at = [&](double t, const Tensor& y) { return slope->forward(torch::cat({y, torch::full({256, 1}, t)}, 1)); };
    Tensor y = torch::randn({256, 32});
    constexpr double h = 0.125;
    for (int step = 0; step < 8; ++step) {
      const double t = h * step;
      const Tensor a = at(t, y);
      const Tensor b = at(t + h / 2, y + h / 2 * a);
      const Tensor c = at(t + h / 2, y + h / 2 * b);
      const Tensor d = at(t + h, y + h * c);
      y = y + h / 6 * (a + 2 * b + 2 * c + d);
    }
    return classification_loss(head(y), 10);
  });
}

/// A network that obeys a differential equation, by its own second derivatives.
void physics_informed() {
  nn::Sequential body(nn::Linear(2, 96), nn::Tanh(), nn::Linear(96, 96), nn::Tanh(), nn::Linear(96, 1));
  train(nn::ModuleList(body), [&] {
    const Tensor at = torch::rand({768, 2}).requires_grad_();
    const Tensor u = body->forward(at);
    const Tensor first = torch::autograd::grad({u.sum()}, {at}, {}, true, true)[0];
    const Tensor second = torch::autograd::grad({first.select(1, 0).sum()}, {at}, {}, true, true)[0];
    const Tensor residual = first.select(1, 1) + u.squeeze(1) * first.select(1, 0) - 0.003 * second.select(1, 0);
    return residual.square().mean() + body->forward(torch::rand({128, 2})).square().mean();
  });
}

/// A Gaussian process in double precision: how probable what was seen is, with a learned kernel.
void gaussian_process() {
  const auto real = torch::TensorOptions(torch::kDouble);
  const Tensor x = torch::randn({320, 8}, real);
  const Tensor y = x.sin().sum(1, true);
  const Tensor lengths = torch::zeros({8}, real).requires_grad_();
  const Tensor noise = torch::zeros({}, real).requires_grad_();
  train(nn::ModuleList(),
        [&] {
          const Tensor scaled = x / lengths.exp();
          const Tensor apart = (scaled.unsqueeze(0) - scaled.unsqueeze(1)).square().sum(-1);
          const Tensor kernel = torch::exp(-0.5 * apart) + (noise.exp() + 1e-4) * torch::eye(320, real);
          const Tensor root = torch::linalg_cholesky(kernel);
          const Tensor weights = torch::cholesky_solve(y, root);
          return 0.5 * torch::matmul(y.t(), weights).sum() + root.diagonal().log().sum();
        },
        {lengths, noise});
}

/// Numbers with two parts, with a function of their size and angle.
void complex_valued() {
  const auto complex = torch::TensorOptions(torch::kComplexFloat);
  const Tensor first = (torch::randn({64, 128}, complex) * 0.1).requires_grad_();
  const Tensor second = (torch::randn({128, 32}, complex) * 0.1).requires_grad_();
  train(nn::ModuleList(),
        [&] {
          const Tensor x = torch::matmul(torch::randn({512, 64}, complex), first);
          const Tensor size = x.abs();
          const Tensor y = torch::matmul(x * (torch::relu(size - 0.1) / (size + 1e-6)), second);
          return (torch::view_as_real(y).square().sum(-1) - 1).square().mean();
        },
        {first, second});
}

// --- other ways to train ----------------------------------------------------------------------------------------------

/// LBFGS looks at its values to choose its steps, so that what it holds depends on them.
void lbfgs() {
  nn::Sequential body(nn::Linear(64, 256), nn::Tanh(), nn::Linear(256, 256), nn::Tanh(), nn::Linear(256, 1));
  const Tensor x = torch::randn({512, 64});
  const Tensor y = x.square().sum(1, true).sin();
  torch::optim::LBFGS optimizer(body->parameters(),
                                torch::optim::LBFGSOptions(1).max_iter(6).history_size(4).line_search_fn("strong_wolfe"));
  for (int step = 0; step < steps; ++step) {
    optimizer.step([&] {
      optimizer.zero_grad();
      const Tensor loss = torch::mse_loss(body->forward(x), y);
      loss.backward();
      return loss;
    });
  }
}

/// MAML: weights from which a step of gradient descent goes far, by gradients of gradients.
void meta_learning() {
  std::vector<Tensor> weights;
  for (const auto& [from, to] : {std::pair{16, 192}, std::pair{192, 192}, std::pair{192, 1}}) {
    weights.push_back(parameter({to, from}));
    weights.push_back(torch::zeros({to}).requires_grad_());
  }
  const auto loss_of = [](const std::vector<Tensor>& with) {
    Tensor x = torch::randn({64, 16});
    for (std::size_t layer = 0; layer < with.size(); layer += 2) {
      x = torch::linear(layer == 0 ? x : torch::relu(x), with[layer], with[layer + 1]);
    }
    return torch::mse_loss(x, torch::randn({64, 1}));
  };
  train(
      nn::ModuleList(),
      [&] {
        Tensor all = torch::zeros({});
        for (int task = 0; task < 3; ++task) {
          std::vector<Tensor> adapted = weights;
          for (int step = 0; step < 2; ++step) {
            const auto slopes = torch::autograd::grad({loss_of(adapted)}, adapted, {}, true, true);
            for (std::size_t i = 0; i < adapted.size(); ++i) adapted[i] = adapted[i] - 0.01 * slopes[i];
          }
          all = all + loss_of(adapted);
        }
        return all;
      },
      weights);
}

}  // namespace

std::vector<family> others() {
  return {{"recommender", recommender},
          {"factorization machine", factorization_machine},
          {"graph convolution", graph_convolution},
          {"TabNet-like", sparse_selection},
          {"graph convolution by a sparse matrix", sparse_graph},
          {"Siamese", siamese},
          {"CLIP-like", pictures_and_words},
          {"distillation", distillation},
          {"DQN", q_learning},
          {"policy gradient", policy_gradient},
          {"PPO", proximal_policy},
          {"Fourier operator", fourier_operator},
          {"neural ODE (RK4)", differential_equation},
          {"physics-informed network", physics_informed},
          {"Gaussian process in float64", gaussian_process},
          {"complex-valued network", complex_valued},
          {"LBFGS", lbfgs,
           "its line search reads losses and slopes, which are unknown: it ends at once, and its history stays empty"},
          {"MAML", meta_learning}};
}

}  // namespace unseen
