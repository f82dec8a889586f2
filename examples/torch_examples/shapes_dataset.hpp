#pragma once

#include <torch_examples/made_up_images.hpp>

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace torch_examples {

/// Images from files listed in a CSV file, each read on demand.
class shapes_dataset : public torch::data::datasets::Dataset<shapes_dataset> {
 public:
  explicit shapes_dataset(std::vector<labelled_path> rows) : rows_(std::move(rows)) {}

  torch::data::Example<> get(std::size_t index) override {
    ppm_image image = read_ppm(rows_[index].path);
    const torch::Tensor pixels = torch::from_blob(image.pixels.data(), {image.height, image.width, 3}, torch::kByte);
    // Converts bytes to numbers from -1 to 1, channels first. The image owns the pixels, so this must copy them.
    return {pixels.permute({2, 0, 1}).to(torch::kFloat).div_(127.5).sub_(1).contiguous(),
            torch::tensor(rows_[index].label, torch::kLong)};
  }

  [[nodiscard]] torch::optional<std::size_t> size() const override { return rows_.size(); }

 private:
  std::vector<labelled_path> rows_;
};

}  // namespace torch_examples
