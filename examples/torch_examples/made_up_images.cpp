#include <torch_examples/made_up_images.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <stdexcept>

namespace torch_examples {

namespace {

constexpr std::int64_t digit_side = 28;
constexpr std::int64_t training_images = 60'000;  // torch::data::datasets::MNIST expects exactly this number
constexpr std::int64_t test_images = 10'000;

using generator = std::mt19937;

/// From 0 to `end` - 1. Unlike std::uniform_int_distribution, it is the same with every standard library.
std::int64_t below(generator& random, std::int64_t end) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(end));
}

std::ofstream create(const std::filesystem::path& path) {
  std::ofstream file{path, std::ios::binary};
  if (!file) throw std::runtime_error{"cannot write '" + path.string() + "': check the folder and its permissions"};
  return file;
}

void finish(std::ofstream& file, const std::filesystem::path& path) {
  if (!file.flush()) throw std::runtime_error{"cannot write '" + path.string() + "': is the disk full?"};
}

void write_big_endian(std::ofstream& file, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(value >> shift & 0xFFU));
}

/// A rectangle of 28 x 28 pixels, given by its upper left corner.
struct segment {
  std::int64_t row, column, height, width;
};

constexpr std::array<segment, 7> segments{
    {{0, 0, 3, 11}, {0, 8, 10, 3}, {8, 8, 10, 3}, {15, 0, 3, 11}, {8, 0, 10, 3}, {0, 0, 10, 3}, {8, 0, 3, 11}}};
constexpr std::array<unsigned, 10> segments_of_digit{0x3F, 0x06, 0x5B, 0x4F, 0x66, 0x6D, 0x7D, 0x07, 0x7F, 0x6F};

void draw_digit(std::span<std::uint8_t> pixels, std::size_t digit, generator& random) {
  std::fill(pixels.begin(), pixels.end(), std::uint8_t{0});
  const std::int64_t top = 2 + below(random, 6);
  const std::int64_t left = 4 + below(random, 10);
  const auto strength = static_cast<std::uint8_t>(160 + below(random, 96));
  for (std::size_t index = 0; index < segments.size(); ++index) {
    if ((segments_of_digit[digit] >> index & 1U) == 0) continue;
    const segment& each = segments[index];
    for (std::int64_t row = top + each.row; row < top + each.row + each.height; ++row) {
      const auto begin = pixels.begin() + row * digit_side + left + each.column;
      std::fill(begin, begin + each.width, strength);
    }
  }
}

/// Either both files are complete or the label file is missing, because it is renamed last.
void write_mnist_part(const std::filesystem::path& folder, const std::string& part, std::int64_t count, std::uint32_t seed) {
  const std::filesystem::path images_path = folder / (part + "-images-idx3-ubyte");
  const std::filesystem::path labels_path = folder / (part + "-labels-idx1-ubyte");
  if (std::filesystem::exists(labels_path)) return;
  const std::filesystem::path unfinished = labels_path.string() + ".part";
  std::ofstream images = create(images_path);
  std::ofstream labels = create(unfinished);
  constexpr std::uint32_t magic_of_images = 2051;
  constexpr std::uint32_t magic_of_labels = 2049;
  for (const std::uint32_t value : {magic_of_images, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(digit_side),
                                    static_cast<std::uint32_t>(digit_side)})
    write_big_endian(images, value);
  for (const std::uint32_t value : {magic_of_labels, static_cast<std::uint32_t>(count)}) write_big_endian(labels, value);

  generator random{seed};
  std::array<std::uint8_t, digit_side * digit_side> pixels{};
  for (std::int64_t image = 0; image < count; ++image) {
    const auto digit = static_cast<std::size_t>(below(random, 10));
    draw_digit(pixels, digit, random);
    images.write(reinterpret_cast<const char*>(pixels.data()), pixels.size());
    labels.put(static_cast<char>(digit));
  }
  finish(images, images_path);
  finish(labels, unfinished);
  std::filesystem::rename(unfinished, labels_path);
}

std::vector<std::uint8_t> draw_shape(std::int64_t side, bool is_frame, generator& random) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * side * side));
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(below(random, 64));
  const std::int64_t radius = side / 5 + below(random, side / 8);
  const std::int64_t row = radius + below(random, side - 2 * radius);
  const std::int64_t column = radius + below(random, side - 2 * radius);
  std::array<std::uint8_t, 3> color{};
  for (std::uint8_t& part : color) part = static_cast<std::uint8_t>(120 + below(random, 136));
  for (std::int64_t y = -radius; y < radius; ++y) {
    for (std::int64_t x = -radius; x < radius; ++x) {
      const bool is_inside = x > 2 - radius && x < radius - 3 && y > 2 - radius && y < radius - 3;
      if (is_frame ? is_inside : x * x + y * y > radius * radius) continue;
      std::copy(color.begin(), color.end(), pixels.begin() + 3 * ((row + y) * side + column + x));
    }
  }
  return pixels;
}

}  // namespace

void write_made_up_mnist(const std::string& folder) {
  std::filesystem::create_directories(folder);
  write_mnist_part(folder, "train", training_images, 1);
  write_mnist_part(folder, "t10k", test_images, 2);
}

std::string write_shapes(const std::string& folder, std::int64_t count, std::int64_t side) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path index_path = std::filesystem::path{folder} / "index.csv";
  std::ofstream index = create(index_path);
  generator random{3};
  for (std::int64_t image = 0; image < count; ++image) {
    const bool is_frame = below(random, 2) == 1;
    const std::string name = "shape" + std::to_string(image) + ".ppm";
    const std::filesystem::path path = std::filesystem::path{folder} / name;
    const std::vector<std::uint8_t> pixels = draw_shape(side, is_frame, random);
    std::ofstream file = create(path);
    file << "P6\n" << side << ' ' << side << "\n255\n";
    file.write(reinterpret_cast<const char*>(pixels.data()), static_cast<std::streamsize>(pixels.size()));
    finish(file, path);
    index << name << ',' << (is_frame ? 1 : 0) << '\n';
  }
  finish(index, index_path);
  return index_path.string();
}

ppm_image read_ppm(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string format;
  ppm_image image;
  int greatest = 0;
  constexpr std::int64_t greatest_side = 10'000;
  if (!(file >> format >> image.width >> image.height >> greatest) || format != "P6" || greatest != 255 || image.width < 1 ||
      image.height < 1 || image.width > greatest_side || image.height > greatest_side) {
    throw std::runtime_error{"'" + path + "' is no PPM image of 8 bits: remove its folder, and the program writes it again"};
  }
  file.get();  // the line's end
  image.pixels.resize(static_cast<std::size_t>(3 * image.width * image.height));
  if (!file.read(reinterpret_cast<char*>(image.pixels.data()), static_cast<std::streamsize>(image.pixels.size()))) {
    throw std::runtime_error{"'" + path + "' ends early: remove its folder, and the program writes it again"};
  }
  return image;
}

std::vector<labelled_path> read_index(const std::string& path) {
  std::ifstream file{path};
  if (!file) throw std::runtime_error{"cannot read '" + path + "'"};
  const std::filesystem::path folder = std::filesystem::path{path}.parent_path();
  std::vector<labelled_path> rows;
  for (std::string line; std::getline(file, line);) {
    const std::size_t comma = line.find(',');
    if (comma == std::string::npos)
      throw std::runtime_error{"'" + path + "': line " + std::to_string(rows.size() + 1) + " has no comma"};
    rows.push_back({(folder / line.substr(0, comma)).string(), std::strtol(line.c_str() + comma + 1, nullptr, 10)});
  }
  return rows;
}

}  // namespace torch_examples
