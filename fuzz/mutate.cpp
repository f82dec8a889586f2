// mutate COUNT FOLDER: passes COUNT mutations of the folder's files to the fuzzer's function, the same ones each time: a fallback
// for fuzzing without libFuzzer.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** arguments) {
  if (count != 3) return 2;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator{arguments[2]}) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const std::filesystem::path& path : paths) {
    std::ifstream file{path, std::ios::binary};
    seeds.emplace_back(std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{});
  }
  if (seeds.empty()) return 2;
  std::mt19937_64 random{1};
  const unsigned long rounds = std::strtoul(arguments[1], nullptr, 10);
  for (unsigned long round = 0; round < rounds; ++round) {
    std::string bytes = seeds[random() % seeds.size()];
    const std::string& other = seeds[random() % seeds.size()];
    for (std::uint64_t changes = 1 + random() % 4; changes != 0; --changes) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 6) {
        case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << random() % 8); break;
        case 1: bytes[at] = static_cast<char>(random()); break;
        case 2: bytes.erase(at, 1 + random() % 4); break;
        case 3: bytes.insert(at, 1 + random() % 8, static_cast<char>(random())); break;
        case 4: bytes.insert(at, other, random() % other.size(), random() % 40); break;
        default: bytes.insert(at, 10, '\xff'); break;
      }
      if (bytes.empty()) bytes = "\1";
    }
    // The last byte determines the meaning of the others.
    if (random() % 8 != 0) bytes.back() = static_cast<char>(1 + random() % 2);
    (void)LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%lu mutations of %zu seeds\n", rounds, seeds.size());
}
