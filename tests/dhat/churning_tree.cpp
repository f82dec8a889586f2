// A search tree whose nodes come and go in random order: many small blocks, and a peak somewhere in the middle.
#include <memprof/backend/new_delete.hpp>
#include <memprof/memprof.hpp>

#include <cstdio>
#include <map>
#include <memory>
#include <random>

namespace {

/// Leaves of three sizes.
struct leaf {
  virtual ~leaf() = default;
};
template <int Bytes>
struct leaf_of : leaf {
  char bytes[Bytes] = {};
};

std::unique_ptr<leaf> make_leaf(unsigned kind) {
  if (kind % 3 == 0) return std::make_unique<leaf_of<24>>();
  if (kind % 3 == 1) return std::make_unique<leaf_of<1000>>();
  return std::make_unique<leaf_of<77>>();
}

void work() {
  std::minstd_rand engine{2026};
  const auto random = [&engine] { return static_cast<unsigned>(engine()); };
  std::map<unsigned, std::unique_ptr<leaf>> tree;
  for (int call = 0; call < 40'000; ++call) {
    const unsigned key = random() % 5'000;
    // Grows first, shrinks later.
    if (random() % 40'000 > static_cast<unsigned>(call)) {
      tree[key] = make_leaf(random());
    } else {
      tree.erase(key);
    }
  }
}

}  // namespace

int main() {
  auto capture = memprof::begin_capture({.ring_capacity = 64});
  work();
  capture.end();
  std::printf("peak %lld\n", static_cast<long long>(capture.profile().space("cpu").cumulative_peak));
}
