// dlib: a small convolutional network on made-up pictures.
#include "training.hpp"

#include <dlib/dnn.h>

#include <cstddef>
#include <memory>
#include <random>

namespace {

using network = dlib::loss_multiclass_log<dlib::fc<
    10, dlib::relu<dlib::fc<
            84, dlib::max_pool<2, 2, 2, 2, dlib::relu<dlib::con<16, 5, 5, 1, 1, dlib::input<dlib::matrix<unsigned char>>>>>>>>>;

struct model {
  std::vector<dlib::matrix<unsigned char>> pictures;
  std::vector<unsigned long> digits;
  network layers;
};

void load(model& of, std::size_t count) {
  std::minstd_rand random{2026};
  for (std::size_t picture = 0; picture < count; ++picture) {
    of.digits.push_back(picture % 10);
    of.pictures.emplace_back(28, 28);
    for (unsigned char& each : of.pictures.back()) each = static_cast<unsigned char>((random() % 128) + 12 * of.digits.back());
  }
}

void train(model& of) {
  dlib::dnn_trainer<network> trainer{of.layers};
  trainer.set_mini_batch_size(64);
  trainer.set_max_num_epochs(1);
  trainer.train(of.pictures, of.digits);
}

}  // namespace

std::vector<phase> training(double size) {
  const auto count = static_cast<std::size_t>(2'000 * size);
  const auto of = std::make_shared<model>();
  return {{"load", [=] { load(*of, count); }}, {"train", [=] { train(*of); }}, {"test", [=] { (void)of->layers(of->pictures); }}};
}
