// Vectors that grow by themselves, one in another, with the peak while the largest moves to its new place.
#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <cstdio>
#include <numeric>
#include <vector>

namespace {

double work() {
  std::vector<std::vector<double>> rows;
  for (std::size_t row = 0; row < 60; ++row) {
    rows.emplace_back();
    for (std::size_t column = 0; column < 10 * row; ++column) rows.back().push_back(static_cast<double>(row * column));
    if (row % 7 == 3) rows.erase(rows.begin());
  }
  std::vector<char> flat;
  for (int count = 0; count < 300'000; ++count) flat.push_back(static_cast<char>(count));
  rows.resize(10);
  flat.shrink_to_fit();
  double sum = std::accumulate(flat.begin(), flat.end(), 0.0);
  for (const auto& row : rows) sum += std::accumulate(row.begin(), row.end(), 0.0);
  return sum;
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture();
  volatile double result = work();
  (void)result;
  capture.end();
  std::printf("peak %lld\n", static_cast<long long>(capture.profile().space("cpu").cumulative_peak));
}
