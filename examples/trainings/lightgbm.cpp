// LightGBM: boosted trees on made-up rows, by its C interface.
#include "training.hpp"

#include <LightGBM/c_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>

namespace {

constexpr int columns = 28;
constexpr int rounds = 10;

void check(int status) {
  if (status != 0) throw std::runtime_error{LGBM_GetLastError()};
}

struct model {
  std::vector<double> values;
  std::vector<float> targets;
  DatasetHandle rows = nullptr;
  BoosterHandle trees = nullptr;

  ~model() {
    if (trees != nullptr) LGBM_BoosterFree(trees);
    if (rows != nullptr) LGBM_DatasetFree(rows);
  }
};

void load(model& of, std::int32_t count) {
  std::minstd_rand random{2026};
  std::uniform_real_distribution<double> number;
  of.values.resize(static_cast<std::size_t>(count) * columns);
  of.targets.resize(static_cast<std::size_t>(count));
  for (double& each : of.values) each = number(random);
  for (std::size_t row = 0; row < of.targets.size(); ++row) {
    const double* const at = &of.values[row * columns];
    of.targets[row] = static_cast<float>(at[0] * at[1] + at[2] - at[3]);
  }
}

void bin(model& of, std::int32_t count) {
  check(LGBM_DatasetCreateFromMat(of.values.data(), C_API_DTYPE_FLOAT64, count, columns, 1, "verbosity=-1", nullptr, &of.rows));
  check(LGBM_DatasetSetField(of.rows, "label", of.targets.data(), count, C_API_DTYPE_FLOAT32));
}

void boost(model& of) {
  // Without force_col_wise LightGBM tries two ways and takes the faster one, so that its memory depends on the clock.
  check(LGBM_BoosterCreate(of.rows,
                           "objective=regression num_leaves=31 num_threads=2 deterministic=true force_col_wise=true verbosity=-1",
                           &of.trees));
  for (int round = 0, is_finished = 0; round < rounds && is_finished == 0; ++round)
    check(LGBM_BoosterUpdateOneIter(of.trees, &is_finished));
}

}  // namespace

std::vector<phase> training(double size) {
  const auto count = static_cast<std::int32_t>(200'000 * size);
  const auto of = std::make_shared<model>();
  return {{"load", [=] { load(*of, count); }}, {"bin", [=] { bin(*of, count); }}, {"boost", [=] { boost(*of); }}};
}
