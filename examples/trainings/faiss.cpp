// faiss: an index with product quantisation, trained, filled and searched.
#include "training.hpp"

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFPQ.h>

#include <cstddef>
#include <memory>
#include <random>

namespace {

constexpr int dimensions = 64;
constexpr std::size_t lists = 64;

struct model {
  std::vector<float> vectors;
  faiss::IndexFlatL2 centres{dimensions};
  faiss::IndexIVFPQ index{&centres, dimensions, lists, 8, 6};

  [[nodiscard]] faiss::Index::idx_t count() const { return static_cast<faiss::Index::idx_t>(vectors.size() / dimensions); }
};

void load(model& of, std::size_t count) {
  std::minstd_rand random{2026};
  std::normal_distribution<float> number;
  of.vectors.resize(count * dimensions);
  for (float& each : of.vectors) each = number(random);
}

void search(const model& of) {
  constexpr faiss::Index::idx_t nearest = 10;
  const faiss::Index::idx_t asked = of.count() / 10;
  std::vector<float> distances(static_cast<std::size_t>(asked * nearest));
  std::vector<faiss::Index::idx_t> found(distances.size());
  of.index.search(asked, of.vectors.data(), nearest, distances.data(), found.data());
}

}  // namespace

std::vector<phase> training(double size) {
  const auto count = static_cast<std::size_t>(10'000 * size);
  const auto of = std::make_shared<model>();
  return {{"load", [=] { load(*of, count); }},
          {"train", [=] { of->index.train(of->count(), of->vectors.data()); }},
          {"add", [=] { of->index.add(of->count(), of->vectors.data()); }},
          {"search", [=] { search(*of); }}};
}
