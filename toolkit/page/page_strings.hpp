#pragma once

#include <memprof/trace/label.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

/// The distinct texts of a page.
class page_strings {
 public:
  [[nodiscard]] std::size_t index_of(std::string_view text) {
    const auto [known, is_new] = indices_.try_emplace(std::string{text}, texts_.size());
    if (is_new) texts_.push_back(known->first);
    return known->second;
  }
  [[nodiscard]] const std::vector<std::string>& texts() const noexcept { return texts_; }

 private:
  std::vector<std::string> texts_{""};
  std::unordered_map<std::string, std::size_t> indices_{{"", 0}};
};

/// Name, shape and dtype of an annotation, as indices into `page_strings`.
[[nodiscard]] inline std::array<std::size_t, 3> annotation_strings(std::string_view text, page_strings& strings) {
  std::array<std::size_t, 3> parts{};
  for (std::size_t& part : parts) {
    const std::size_t end = std::min(text.find(name_separator), text.size());
    part = strings.index_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
