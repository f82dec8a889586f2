#include "family.hpp"

#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

namespace unseen {

namespace {

[[nodiscard]] nn::Sequential twice_convolved(std::int64_t from, std::int64_t to) {
  return nn::Sequential(convolution(from, to, 3), nn::GroupNorm(8, to), nn::SiLU(), convolution(to, to, 3), nn::GroupNorm(8, to),
                        nn::SiLU());
}
[[nodiscard]] Tensor twice_as_large(const Tensor& x) { return torch::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)}); }

void unet() {
  nn::Sequential down1 = twice_convolved(3, 32);
  nn::Sequential down2 = twice_convolved(32, 64);
  nn::Sequential middle = twice_convolved(64, 128);
  nn::Sequential up2 = twice_convolved(192, 64);
  nn::Sequential up1 = twice_convolved(96, 32);
  nn::Conv2d head(32, 3, 1);
  train(nn::ModuleList(down1, down2, middle, up2, up1, head), [&] {
    const Tensor image = torch::randn({4, 3, 64, 64});
    const Tensor a = down1->forward(image);
    const Tensor b = down2->forward(torch::max_pool2d(a, 2));
    const Tensor c = middle->forward(torch::max_pool2d(b, 2));
    const Tensor d = up2->forward(torch::cat({twice_as_large(c), b}, 1));
    return torch::mse_loss(head(up1->forward(torch::cat({twice_as_large(d), a}, 1))), image);
  });
}

// --- diffusion --------------------------------------------------------------------------------------------------------

struct timed_blockImpl : nn::Module {
  timed_blockImpl(std::int64_t from, std::int64_t to)
      : first(register_module("first", nn::Sequential(nn::GroupNorm(8, from), nn::SiLU(), convolution(from, to, 3)))),
        time(register_module("time", nn::Linear(128, to))),
        second(register_module("second",
                               nn::Sequential(nn::GroupNorm(8, to), nn::SiLU(), nn::Dropout(0.1), convolution(to, to, 3)))),
        shortcut(register_module("shortcut", nn::Conv2d(from, to, 1))) {}
  Tensor forward(const Tensor& x, const Tensor& t) {
    return shortcut(x) + second->forward(first->forward(x) + time(t).unsqueeze(-1).unsqueeze(-1));
  }

  nn::Sequential first;
  nn::Linear time;
  nn::Sequential second;
  nn::Conv2d shortcut;
};
TORCH_MODULE(timed_block);

[[nodiscard]] Tensor sinusoids(const Tensor& times, std::int64_t width) {
  const Tensor frequencies = torch::exp(torch::arange(width / 2) * (-std::log(10000.0) / static_cast<double>(width / 2)));
  const Tensor angles = times.unsqueeze(1) * frequencies.unsqueeze(0);
  return torch::cat({angles.sin(), angles.cos()}, 1);
}

/// Learns noise; a second model follows its weights, as the one that is kept does.
void diffusion() {
  nn::Sequential time(nn::Linear(64, 128), nn::SiLU(), nn::Linear(128, 128));
  nn::Conv2d stem = convolution(3, 32, 3);
  timed_block down1(32, 32);
  nn::Conv2d smaller = convolution(32, 32, 3, 2);
  timed_block down2(32, 64);
  nn::GroupNorm norm(8, 64);
  nn::Conv1d qkv(64, 192, 1);
  nn::Conv1d mixed(64, 64, 1);
  timed_block up2(128, 64);
  nn::Conv2d larger = convolution(64, 32, 3);
  timed_block up1(64, 32);
  nn::Conv2d head = convolution(32, 3, 3);
  const nn::ModuleList modules(time, stem, down1, smaller, down2, norm, qkv, mixed, up2, larger, up1, head);
  std::vector<Tensor> followers;
  for (const Tensor& one : modules->parameters()) followers.push_back(one.detach().clone());
  const Tensor kept = torch::cumprod(1 - torch::linspace(1e-4, 0.02, 1000), 0);

  train(modules, [&] {
    {
      const torch::NoGradGuard no_gradients;
      const std::vector<Tensor> current = modules->parameters();
      for (std::size_t i = 0; i < followers.size(); ++i) followers[i].lerp_(current[i], 0.01);
    }
    const Tensor clean = torch::randn({8, 3, 32, 32});
    const Tensor noise = torch::randn_like(clean);
    const Tensor at = labels(1000, {8});
    const Tensor share = kept.index_select(0, at).view({-1, 1, 1, 1});
    const Tensor t = time->forward(sinusoids(at.to(torch::kFloat), 64));
    const Tensor a = down1(stem(share.sqrt() * clean + (1 - share).sqrt() * noise), t);
    const Tensor b = down2(smaller(a), t);
    const auto parts = qkv(norm(b).flatten(2)).chunk(3, 1);
    const Tensor weights = torch::softmax(torch::bmm(parts[0].transpose(1, 2), parts[1]) / 8.0, -1);
    const Tensor seen = b + mixed(torch::bmm(parts[2], weights.transpose(1, 2))).view_as(b);
    const Tensor c = larger(twice_as_large(up2(torch::cat({seen, b}, 1), t)));
    return torch::mse_loss(head(up1(torch::cat({c, a}, 1), t)), noise);
  });
}

// --- autoencoders -----------------------------------------------------------------------------------------------------

void variational_autoencoder() {
  nn::Linear hidden(784, 256);
  nn::Linear mean(256, 32);
  nn::Linear spread(256, 32);
  nn::Sequential decoder(nn::Linear(32, 256), nn::ReLU(), nn::Linear(256, 784), nn::Sigmoid());
  train(nn::ModuleList(hidden, mean, spread, decoder), [&] {
    const Tensor x = torch::rand({64, 784});
    const Tensor h = torch::relu(hidden(x));
    const Tensor mu = mean(h);
    const Tensor log_variance = spread(h);
    const Tensor z = mu + torch::randn_like(mu) * torch::exp(0.5 * log_variance);
    return torch::binary_cross_entropy(decoder->forward(z), x, {}, at::Reduction::Sum) -
           0.5 * torch::sum(1 + log_variance - mu.pow(2) - log_variance.exp());
  });
}

void convolutional_autoencoder() {
  nn::Sequential down(convolution(3, 32, 3, 2), nn::ELU(), convolution(32, 64, 3, 2), nn::ELU(), nn::Flatten(),
                      nn::Linear(64 * 16 * 16, 64));
  nn::Sequential up(nn::Linear(64, 64 * 16 * 16), nn::ELU(), nn::Unflatten(nn::UnflattenOptions(1, {64, 16, 16})),
                    doubling(64, 32), nn::ELU(), doubling(32, 3), nn::Sigmoid());
  train(nn::ModuleList(down, up), [&] {
    const Tensor image = torch::rand({8, 3, 64, 64});
    return torch::binary_cross_entropy(up->forward(down->forward(image + 0.1 * torch::randn_like(image))), image);
  });
}

// --- adversaries ------------------------------------------------------------------------------------------------------

void transposed_generator() {
  nn::Sequential body(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(64, 64, 4).bias(false)), nn::BatchNorm2d(64), nn::ReLU(),
                      nn::ConvTranspose2d(nn::ConvTranspose2dOptions(64, 32, 4).stride(2).padding(1)), nn::BatchNorm2d(32),
                      nn::ReLU(), nn::ConvTranspose2d(nn::ConvTranspose2dOptions(32, 1, 4).stride(2).padding(1)), nn::Sigmoid());
  train(nn::ModuleList(body), [&] {
    return torch::binary_cross_entropy(body->forward(torch::randn({64, 64, 1, 1})), torch::ones({64, 1, 16, 16}));
  });
}

void adversaries() {
  nn::Sequential generator(nn::ConvTranspose2d(nn::ConvTranspose2dOptions(64, 128, 4).bias(false)), nn::BatchNorm2d(128),
                           nn::ReLU(nn::ReLUOptions(true)), doubling(128, 64), nn::BatchNorm2d(64),
                           nn::ReLU(nn::ReLUOptions(true)), doubling(64, 32), nn::BatchNorm2d(32),
                           nn::ReLU(nn::ReLUOptions(true)), doubling(32, 3), nn::Tanh());
  const auto leaky = [] { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)); };
  nn::Sequential critic(convolution(3, 32, 3, 2), leaky(), convolution(32, 64, 3, 2), nn::BatchNorm2d(64), leaky(),
                        convolution(64, 128, 3, 2), nn::BatchNorm2d(128), leaky(), nn::Flatten(), nn::Linear(128 * 16, 1));
  torch::optim::Adam of_generator(generator->parameters(), torch::optim::AdamOptions(2e-4).betas({0.5, 0.999}));
  torch::optim::Adam of_critic(critic->parameters(), torch::optim::AdamOptions(2e-4).betas({0.5, 0.999}));
  for (int step = 0; step < steps; ++step) {
    const Tensor made = generator->forward(torch::randn({16, 64, 1, 1}));
    of_critic.zero_grad();
    torch::binary_cross_entropy_with_logits(critic->forward(torch::randn({16, 3, 32, 32})), torch::full({16, 1}, 0.9)).backward();
    torch::binary_cross_entropy_with_logits(critic->forward(made.detach()), torch::zeros({16, 1})).backward();
    of_critic.step();
    of_generator.zero_grad();
    torch::binary_cross_entropy_with_logits(critic->forward(made), torch::ones({16, 1})).backward();
    of_generator.step();
  }
}

/// A Wasserstein critic whose gradient is held near one: its loss holds a gradient, and the backward pass that of a gradient.
void gradient_penalty() {
  nn::Sequential critic(convolution(3, 32, 3, 2), nn::Tanh(), convolution(32, 64, 3, 2), nn::Tanh(), nn::Flatten(),
                        nn::Linear(64 * 64, 1));
  train(nn::ModuleList(critic), [&] {
    const Tensor real = torch::randn({16, 3, 32, 32});
    const Tensor made = torch::randn({16, 3, 32, 32});
    const Tensor share = torch::rand({16, 1, 1, 1});
    const Tensor between = (share * real + (1 - share) * made).requires_grad_();
    const Tensor slope = torch::autograd::grad({critic->forward(between).sum()}, {between}, {}, true, true)[0];
    const Tensor penalty = (slope.flatten(1).norm(2, 1) - 1).square().mean();
    return critic->forward(made).mean() - critic->forward(real).mean() + 10 * penalty;
  });
}

/// CycleGAN: there and back.
void cycle() {
  const auto mapping = [] {
    return nn::Sequential(nn::ReflectionPad2d(3), nn::Conv2d(3, 24, 7), nn::InstanceNorm2d(24), nn::ReLU(),
                          convolution(24, 48, 3, 2), nn::InstanceNorm2d(48), nn::ReLU(), nn::ReflectionPad2d(1),
                          nn::Conv2d(48, 48, 3), nn::InstanceNorm2d(48), nn::ReLU(), doubling(48, 24), nn::InstanceNorm2d(24),
                          nn::ReLU(), nn::ReflectionPad2d(3), nn::Conv2d(24, 3, 7), nn::Tanh());
  };
  nn::Sequential there = mapping();
  nn::Sequential back = mapping();
  nn::Sequential critic(convolution(3, 24, 4, 2), nn::LeakyReLU(), nn::Conv2d(24, 1, 4));
  train(nn::ModuleList(there, back, critic), [&] {
    const Tensor image = torch::randn({2, 3, 48, 48});
    const Tensor made = there->forward(image);
    return (critic->forward(made) - 1).square().mean() + 10 * torch::l1_loss(back->forward(made), image) +
           5 * torch::l1_loss(there->forward(image), image);
  });
}

/// StyleGAN: the weights of a convolution depend on the example, so that each is a group of its own.
void modulated_convolutions() {
  constexpr std::int64_t batch = 6;
  constexpr std::int64_t width = 32;
  nn::Sequential mapping(nn::Linear(64, 64), nn::LeakyReLU(), nn::Linear(64, 64), nn::LeakyReLU());
  nn::ModuleList styles;
  std::vector<Tensor> weights;
  for (int layer = 0; layer < 2; ++layer) {
    styles->push_back(nn::Linear(64, width));
    weights.push_back(parameter({width, width, 3, 3}));
  }
  const Tensor start = parameter({1, width, 16, 16});
  nn::Conv2d head(width, 3, 1);
  std::vector<Tensor> further = weights;
  further.push_back(start);
  train(
      nn::ModuleList(mapping, styles, head),
      [&] {
        const Tensor style = mapping->forward(torch::randn({batch, 64}));
        Tensor x = start.repeat({batch, 1, 1, 1});
        for (std::size_t layer = 0; layer < 2; ++layer) {
          const Tensor scale = styles[layer]->as<nn::Linear>()->forward(style).view({batch, 1, width, 1, 1}) + 1;
          Tensor own = weights[layer].unsqueeze(0) * scale;
          own = own * torch::rsqrt(own.square().sum(std::vector<std::int64_t>{2, 3, 4}, true) + 1e-8);
          const Tensor larger = twice_as_large(x);
          const std::int64_t side = larger.size(2);
          const Tensor y = torch::conv2d(larger.reshape({1, batch * width, side, side}), own.view({batch * width, width, 3, 3}),
                                         {}, 1, 1, 1, batch);
          const Tensor noisy = y.view({batch, width, side, side}) + 0.1 * torch::randn({batch, 1, side, side});
          x = torch::leaky_relu(noisy, 0.2);
        }
        return fn::softplus(-head(x)).mean();
      },
      further);
}

/// VQ-VAE: between encoder and decoder is the nearest of a few vectors, through which gradients pass unchanged.
void vector_quantization() {
  nn::Sequential down(convolution(3, 32, 4, 2), nn::ReLU(), convolution(32, 32, 3, 2));
  nn::Sequential up(doubling(32, 32), nn::ReLU(), doubling(32, 3));
  nn::Embedding codes(128, 32);
  train(nn::ModuleList(down, up, codes), [&] {
    const Tensor image = torch::randn({16, 3, 30, 30});
    const Tensor found = down->forward(image).permute({0, 2, 3, 1}).contiguous();
    const Tensor flat = found.view({-1, 32});
    const Tensor distances =
        flat.square().sum(1, true) - 2 * torch::matmul(flat, codes->weight.t()) + codes->weight.square().sum(1);
    const Tensor nearest = codes(distances.argmin(1)).view_as(found);
    const Tensor passed = found + (nearest - found).detach();
    const Tensor again = up->forward(passed.permute({0, 3, 1, 2})).slice(2, 0, 30).slice(3, 0, 30);
    return torch::mse_loss(again, image) + torch::mse_loss(nearest, found.detach()) +
           0.25 * torch::mse_loss(found, nearest.detach());
  });
}

/// A normalizing flow: what it adds to the density is the determinant of its matrices.
void normalizing_flow() {
  constexpr std::int64_t width = 64;
  std::vector<Tensor> rotations;
  nn::ModuleList couplings;
  for (int layer = 0; layer < 3; ++layer) {
    rotations.push_back((torch::eye(width) + 0.01 * torch::randn({width, width})).requires_grad_());
    couplings->push_back(nn::Sequential(nn::Linear(width / 2, 256), nn::ReLU(), nn::Linear(256, width)));
  }
  train(
      couplings,
      [&] {
        Tensor x = torch::randn({512, width});
        Tensor gain = torch::zeros({512});
        for (std::size_t layer = 0; layer < 3; ++layer) {
          x = torch::matmul(x, rotations[layer]);
          const auto halves = x.chunk(2, 1);
          const auto change = couplings[layer]->as<nn::Sequential>()->forward(halves[0]).chunk(2, 1);
          const Tensor scale = torch::tanh(change[0]);
          x = torch::cat({halves[0], halves[1] * torch::exp(scale) + change[1]}, 1);
          gain = gain + scale.sum(1) + std::get<1>(torch::linalg_slogdet(rotations[layer]));
        }
        return (0.5 * x.square().sum(1) - gain).mean();
      },
      rotations);
}

/// An energy: examples of the model itself are found by walking down its slope.
void energy() {
  nn::Sequential body(convolution(1, 24, 3), nn::SiLU(), convolution(24, 48, 3, 2), nn::SiLU(), nn::Flatten(),
                      nn::Linear(48 * 196, 1));
  train(nn::ModuleList(body), [&] {
    Tensor walker = torch::rand({12, 1, 28, 28});
    for (int i = 0; i < 4; ++i) {
      walker = walker.detach().requires_grad_();
      const Tensor slope = torch::autograd::grad({body->forward(walker).sum()}, {walker})[0];
      walker = (walker - 0.5 * slope.clamp(-0.03, 0.03) + 0.005 * torch::randn_like(walker)).clamp(0, 1);
    }
    const Tensor down = body->forward(torch::rand({12, 1, 28, 28}));
    const Tensor up = body->forward(walker.detach());
    return down.mean() - up.mean() + 0.1 * (down.square() + up.square()).mean();
  });
}

}  // namespace

std::vector<family> generators() {
  return {{"UNet", unet},
          {"diffusion UNet with attention", diffusion},
          {"VAE", variational_autoencoder},
          {"convolutional autoencoder", convolutional_autoencoder},
          {"GAN generator", transposed_generator},
          {"GAN, two optimizers", adversaries},
          {"WGAN with a gradient penalty", gradient_penalty},
          {"CycleGAN-like", cycle},
          {"StyleGAN-like, a group for each example", modulated_convolutions},
          {"VQ-VAE", vector_quantization},
          {"normalizing flow", normalizing_flow},
          {"energy-based model", energy}};
}

}  // namespace unseen
