#include <nano_gpt/corpus.hpp>
#include <nano_gpt/input_error.hpp>

#include <memprof/memprof.hpp>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

namespace nano_gpt {

corpus::corpus(std::string_view text) : vocabulary_{text} {
  std::ranges::sort(vocabulary_, {}, [](char character) { return static_cast<unsigned char>(character); });
  vocabulary_.erase(std::unique(vocabulary_.begin(), vocabulary_.end()), vocabulary_.end());

  std::array<std::int32_t, 256> token_of{};
  for (std::size_t token = 0; token < vocabulary_.size(); ++token) {
    token_of[static_cast<unsigned char>(vocabulary_[token])] = static_cast<std::int32_t>(token);
  }
  tokens_.reserve(text.size());
  for (const char character : text) tokens_.push_back(token_of[static_cast<unsigned char>(character)]);
}

batch corpus::sample(std::size_t batch_size, std::size_t seq_len, random_stream& random, const tensor_memory& memory) const {
  const auto scope = memprof::track_operation<"batch">(memprof::category::input);
  batch result{{{batch_size, seq_len}, memory}, {{batch_size, seq_len}, memory}};
  if (!memprof::dispatching()) return result;
  for (std::size_t sequence = 0; sequence < batch_size; ++sequence) {
    const auto first = tokens_.begin() + static_cast<std::ptrdiff_t>(random.below(tokens_.size() - seq_len));
    const std::size_t row = sequence * seq_len;
    std::copy_n(first, seq_len, result.tokens.data() + row);
    std::copy_n(first + 1, seq_len, result.targets.data() + row);
  }
  return result;
}

std::string read_text(const std::filesystem::path& file) {
  const std::string name = file.string();
  if (!std::filesystem::exists(file)) throw input_error{"cannot find the text file '" + name + "': check the path after --text"};
  if (std::filesystem::is_directory(file)) throw input_error{"'" + name + "' is a directory: give --text a file in it"};
  std::ifstream stream{file, std::ios::binary};
  std::string text{std::istreambuf_iterator<char>{stream}, {}};
  if (!stream) throw input_error{"cannot read the text file '" + name + "': check its permissions"};
  return text;
}

std::string read_default_text() { return read_text(NANO_GPT_TEXT); }

}  // namespace nano_gpt
