#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Images to learn from without downloading anything; always the same ones.
namespace torch_examples {

/// Writes the four files of MNIST to a folder, in their original format and with the original number of images, if they are
/// missing. The digits are those of a seven-segment display, in varying positions and intensities. Throws std::runtime_error.
void write_made_up_mnist(const std::string& folder);

/// Writes images of discs (class 0) and of square frames (class 1) as PPM files of `side` by `side` pixels, and `index.csv`,
/// which has the name and the class of each. Returns the path of `index.csv`. Throws std::runtime_error.
std::string write_shapes(const std::string& folder, std::int64_t count, std::int64_t side);

/// An image as written by `write_shapes`.
struct ppm_image {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::vector<std::uint8_t> pixels;  ///< red, green and blue of each pixel, row by row
};

/// Throws std::runtime_error.
[[nodiscard]] ppm_image read_ppm(const std::string& path);

/// A line of `index.csv`.
struct labelled_path {
  std::string path;
  std::int64_t label = 0;
};

/// Throws std::runtime_error.
[[nodiscard]] std::vector<labelled_path> read_index(const std::string& path);

}  // namespace torch_examples
