#pragma once

#include <memprof/config.hpp>

#include <span>
#include <string_view>

/// @file
/// The page that reports are written into: what stands before its data, and what after, each in pieces. Its data, and what it
/// shows of them, are described in viewer/DATA.md. viewer/build.mjs makes page_template.cpp from viewer/src.

namespace memprof::inline MEMPROF_ABI::detail {

[[nodiscard]] std::span<const std::string_view> page_head() noexcept;

[[nodiscard]] std::span<const std::string_view> page_tail() noexcept;

}  // namespace memprof::inline MEMPROF_ABI::detail
