#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/detail/parse_double.hpp>
#include <memprof/toolkit/analysis/caching_allocator_options.hpp>
#include <memprof/toolkit/analysis/cuda_alloc_conf.hpp>

#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace memprof::inline MEMPROF_ABI {

namespace detail {
namespace {

/// Keys that change what is reserved.
constexpr std::array<std::string_view, 9> modelled_alloc_conf_keys{"backend",
                                                                   "expandable_segments",
                                                                   "garbage_collection_threshold",
                                                                   "large_segment_size_mb",
                                                                   "max_split_size_mb",
                                                                   "max_non_split_rounding_mb",
                                                                   "per_process_memory_fraction",
                                                                   "roundup_power2_divisions",
                                                                   "throw_on_cudamalloc_oom"};

/// Keys that have no effect on how much device memory is reserved, like all that begin with "pinned_".
constexpr std::array<std::string_view, 3> ineffective_alloc_conf_keys{"graph_capture_record_stream_reuse",
                                                                      "release_lock_on_cudamalloc", "release_lock_on_hipmalloc"};

/// Reads "key:value,key:[value:value,...]"; spaces are ignored.
class alloc_conf_reader {
 public:
  explicit alloc_conf_reader(std::string_view text) : text_{text} {}

  [[nodiscard]] caching_allocator_options read() && {
    while (!at_end()) {
      key_ = next_word();
      expect(':');
      read_value();
      if (!at_end()) expect(',');
    }
    return options_;
  }

 private:
  void read_value() {
    if (key_ == "max_split_size_mb") {
      options_.max_split_size = megabytes_from(options_.large_segment_size / mebibyte);
    } else if (key_ == "max_non_split_rounding_mb") {
      options_.max_non_split_rounding = megabytes_from(options_.large_segment_size / mebibyte);
    } else if (key_ == "large_segment_size_mb") {
      options_.large_segment_size = megabytes_from(smallest_large_segment / mebibyte + 1);
    } else if (key_ == "garbage_collection_threshold") {
      options_.garbage_collection_threshold = fraction();
      if (!(options_.garbage_collection_threshold < 1)) refuse("a number over 0 and below 1");
    } else if (key_ == "per_process_memory_fraction") {
      options_.per_process_memory_fraction = fraction();
    } else if (key_ == "roundup_power2_divisions") {
      read_divisions();
    } else if (key_ == "expandable_segments") {
      options_.expandable_segments = truth();
    } else if (key_ == "backend") {
      read_backend();
    } else if (key_ == "throw_on_cudamalloc_oom") {
      if (truth()) fault("throw_on_cudamalloc_oom:True, which refuses requests early, is not modelled; leave it out");
    } else if (is_ineffective(key_)) {
      skip_value();
    } else if (key_.starts_with("expandable_segments_reserve")) {
      fault(std::string{key_} + " is not modelled; leave it out, and expandable segments take 9/8 of the device's size");
    } else {
      refuse_key();
    }
  }

  void read_backend() {
    const std::string_view name = next_word();
    if (name == "native") return;
    if (name == "cudaMallocAsync" || name == "hipMallocAsync") {
      fault("backend:" + std::string{name} +
            " is the driver's own allocator, which is not modelled; leave it out to ask about "
            "PyTorch's native one");
    }
    refuse("native");
  }

  void read_divisions() {
    auto& divisions = options_.roundup_power2_divisions;
    if (!skips('[')) {
      divisions.fill(power_of_two("a power of two"));
      return;
    }
    // The first size also applies to all sizes below it, and ">" to all above the size before it. Sizes that no pair names are
    // not divided.
    bool is_first = true;
    std::size_t interval = 0;
    while (!skips(']')) {
      if (skips('>')) {
        fill(interval + 1, divisions.size());
      } else {
        interval = interval_of_megabytes();
        fill(is_first ? 0 : interval, interval + 1);
        is_first = false;
      }
      if (!skips(',') && peek() != ']') fault("roundup_power2_divisions lacks the closing ']'");
    }
  }

  /// Reads ":divisions" for the intervals [begin, end).
  void fill(std::size_t begin, std::size_t end) {
    expect(':');
    const std::int64_t divisions = divisions_of_interval();
    for (std::size_t index = begin; index < end; ++index) options_.roundup_power2_divisions[index] = divisions;
  }

  [[nodiscard]] std::size_t interval_of_megabytes() {
    const std::int64_t size = power_of_two("sizes in MB that are powers of two, or >");
    const auto interval = static_cast<std::size_t>(63 - std::countl_zero(static_cast<std::uint64_t>(size)));
    return interval < caching_allocator_options::roundup_intervals ? interval : caching_allocator_options::roundup_intervals - 1;
  }

  [[nodiscard]] std::int64_t divisions_of_interval() {
    const std::int64_t divisions = whole_number("powers of two or 0 after each size");
    if (std::popcount(static_cast<std::uint64_t>(divisions)) > 1) refuse("powers of two or 0 after each size");
    return divisions;
  }

  [[nodiscard]] std::int64_t power_of_two(std::string_view wanted) {
    const std::int64_t number = whole_number(wanted);
    if (!std::has_single_bit(static_cast<std::uint64_t>(number))) refuse(wanted);
    return number;
  }

  /// A number of MiB that is at least `least`, in bytes; anything beyond 2^63-1 bytes means no limit.
  [[nodiscard]] std::int64_t megabytes_from(std::int64_t least) {
    const std::string wanted = "whole MB, at least " + std::to_string(least);
    const std::int64_t megabytes = whole_number(wanted);
    if (megabytes < least) refuse(wanted);
    return megabytes > caching_allocator_options::unlimited / mebibyte ? caching_allocator_options::unlimited
                                                                       : megabytes * mebibyte;
  }

  [[nodiscard]] std::int64_t whole_number(std::string_view wanted) {
    const std::string_view word = next_word();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size() || number < 0) refuse(wanted);
    return number;
  }

  /// A number above 0 and at most 1.
  [[nodiscard]] double fraction() {
    const std::string_view word = next_word();
    double number = 0;
    const auto [end, error] = detail::parse_double(word, number);
    const bool is_number = error == std::errc{} && end == word.data() + word.size();
    if (!is_number || !(number > 0 && number <= 1)) refuse("a number over 0 and up to 1");  // rejects NaN too
    return number;
  }

  [[nodiscard]] bool truth() {
    const std::string_view word = next_word();
    if (word != "True" && word != "False") refuse("True or False");
    return word == "True";
  }

  void skip_value() {
    if (!skips('[')) {
      (void)next_word();
      return;
    }
    while (!at_end() && peek() != ']') ++position_;
    expect(']');
  }

  [[nodiscard]] static bool is_ineffective(std::string_view key) {
    for (const std::string_view known : ineffective_alloc_conf_keys) {
      if (key == known) return true;
    }
    return key.starts_with("pinned_");
  }

  // --- characters -----------------------------------------------------------------------------------------------------

  [[nodiscard]] static bool is_space(char letter) noexcept { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

  void skip_spaces() noexcept {
    while (position_ < text_.size() && is_space(text_[position_])) ++position_;
  }
  [[nodiscard]] bool at_end() noexcept {
    skip_spaces();
    return position_ == text_.size();
  }
  /// The next character other than a space; 0 at the end.
  [[nodiscard]] char peek() noexcept { return at_end() ? '\0' : text_[position_]; }

  [[nodiscard]] bool skips(char wanted) noexcept {
    if (peek() != wanted) return false;
    ++position_;
    return true;
  }
  void expect(char wanted) {
    if (!skips(wanted)) fault("expected '" + std::string(1, wanted) + "' at character " + std::to_string(position_ + 1));
  }

  /// Reads up to the next of ",:[]" or space.
  [[nodiscard]] std::string_view next_word() noexcept {
    skip_spaces();
    const std::size_t begin = position_;
    constexpr std::string_view ends = ",:[]";
    while (position_ < text_.size() && !is_space(text_[position_]) && ends.find(text_[position_]) == std::string_view::npos) {
      ++position_;
    }
    word_ = text_.substr(begin, position_ - begin);
    return word_;
  }

  // --- errors ---------------------------------------------------------------------------------------------------------

  [[noreturn]] void refuse(std::string_view wanted) const {
    fault(std::string{key_} + " is '" + std::string{word_} + "'; expected " + std::string{wanted});
  }

  [[noreturn]] void refuse_key() const {
    std::string known;
    for (const std::string_view key : modelled_alloc_conf_keys) known += std::string{key} + ", ";
    for (const std::string_view key : ineffective_alloc_conf_keys) known += std::string{key} + ", ";
    fault("'" + std::string{key_} + "' is unknown; known keys are " + known + "and those beginning with pinned_");
  }

  [[noreturn]] void fault(const std::string& what) const {
    raise("PYTORCH_CUDA_ALLOC_CONF '" + std::string{text_} + "': " + what);
  }

  std::string_view text_;
  std::size_t position_ = 0;
  std::string_view key_;
  std::string_view word_;  // read last
  caching_allocator_options options_;
};

}  // namespace
}  // namespace detail

caching_allocator_options parse_cuda_alloc_conf(std::string_view text) { return detail::alloc_conf_reader{text}.read(); }

}  // namespace memprof::inline MEMPROF_ABI
