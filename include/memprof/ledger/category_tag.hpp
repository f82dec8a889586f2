#pragma once

#include <memprof/trace/category.hpp>

#include <cstdint>

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether an event's tag names a category; 0 does not, and out-of-range values count as 0.
[[nodiscard]] inline bool is_category(std::uint16_t tag) noexcept { return tag - 1U < category_names.size(); }
/// The category's number, from 0; that of `other` if the tag names none.
[[nodiscard]] inline std::uint32_t category_of(std::uint16_t tag) noexcept { return is_category(tag) ? tag - 1U : 0U; }

}  // namespace memprof::inline MEMPROF_ABI::detail
