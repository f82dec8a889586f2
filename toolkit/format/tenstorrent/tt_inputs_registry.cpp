#include <memprof/config.hpp>
#include <memprof/toolkit/format/log_line.hpp>
#include <memprof/toolkit/format/tenstorrent/mlir_operation.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_inputs_registry.hpp>
#include <memprof/toolkit/format/tenstorrent/tt_log_line.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

std::int64_t bytes_of_mlir_type(std::string_view type) noexcept {
  constexpr std::array<std::string_view, 4> prefixes{"bf", "ui", "si", "f"};
  if (type == "bool" || type == "i1") return 1;
  if (type == "index") return 8;
  std::string_view digits = type;
  for (const std::string_view prefix : prefixes) {
    if (digits.size() == type.size() && digits.starts_with(prefix)) digits.remove_prefix(prefix.size());
  }
  if (digits.size() == type.size() && digits.starts_with('i')) digits.remove_prefix(1);
  const std::string_view bits = detail::digits_at(digits, 0);
  if (digits.size() == type.size() || bits.empty()) return 4;
  // f8E4M3FN has letters after its bits.
  if (bits == "8") return 1;
  if (bits.size() != digits.size()) return 4;
  return bits == "16" ? 2 : bits == "64" ? 8 : 4;
}

namespace detail {

void tt_inputs_registry::line(std::string_view text) {
  if (const std::string_view section = word_after(text, "MLIR Module "); !section.empty()) return begin(section);
  if (section_ == none) return;
  if (text.find("END OF MLIR MODULE") != std::string_view::npos) return end();
  if (!is_open_) {
    const std::size_t at = text.find(head);
    if (at == std::string_view::npos) return;
    is_open_ = true;
    text.remove_prefix(at + head.size() - 1);
  }
  if (signature_.size() + text.size() > longest_signature) return end();
  if (!signature_.empty()) signature_ += ' ';
  signature_ += text;
  // Only a line with a parenthesis can close it: other lines need no search from the start.
  if (text.find(") ->") == std::string_view::npos && text.find(") {") == std::string_view::npos) return;
  const std::size_t end = end_of_bracket(signature_, 0);
  if (end == std::string_view::npos) return;
  signature_.resize(end - 1);
  best_ = section_;
  inputs_.clear();
  for (const std::string_view argument : split_outside_brackets(std::string_view{signature_}.substr(1))) add(argument);
  this->end();
}

void tt_inputs_registry::begin(std::string_view section) {
  end();
  const auto known = std::find(sections.begin(), sections.end(), section);
  const auto index = static_cast<std::size_t>(known - sections.begin());
  if (index < best_) section_ = index;
}

void tt_inputs_registry::end() {
  section_ = none;
  is_open_ = false;
  signature_.clear();
}

void tt_inputs_registry::add(std::string_view argument) {
  tt_input input;
  const std::size_t colon = argument.find(':');
  input.ssa = trimmed(argument.substr(0, colon));
  const std::vector<mlir_tensor> tensors = tensors_of_types(argument.substr(0, argument.find('{')));
  if (!input.ssa.starts_with('%') || tensors.empty()) return;
  input.shape = tensors.front().shape;
  input.dtype = tensors.front().dtype;
  input.type = quoted(argument, "ttcore.argument_type", '<', '>');
  if (input.type.empty()) input.type = "unknown";
  input.name = quoted(argument, "ttir.name", '"', '"');
  if (input.name.empty()) input.name = input.ssa;
  input.bytes = bytes_of_mlir_type(input.dtype);
  std::string_view sizes = input.shape;
  while (!sizes.empty()) {
    const std::string_view size = sizes.substr(0, sizes.find('x'));
    sizes.remove_prefix(std::min(sizes.size(), size.size() + 1));
    const std::optional<std::int64_t> elements = whole_number(size);
    if (!elements || __builtin_mul_overflow(input.bytes, *elements, &input.bytes)) input.bytes = 0;
  }
  inputs_.push_back(std::move(input));
}

std::string tt_inputs_registry::quoted(std::string_view text, std::string_view key, char open, char close) {
  const std::optional<std::string_view> rest = text_after(text, key);
  const std::size_t begin = rest ? rest->find(open) : std::string_view::npos;
  if (begin == std::string_view::npos) return {};
  return std::string{rest->substr(begin + 1, rest->find(close, begin + 1) - begin - 1)};
}

}  // namespace detail
}  // namespace memprof::inline MEMPROF_ABI
