#pragma once

#include <memprof/config.hpp>

#include <string>
#include <string_view>

/// @file
/// The encoding of a page's data: base64 (RFC 4648).

namespace memprof::inline MEMPROF_ABI::detail {

/// Base64 with padding and without line breaks.
[[nodiscard]] std::string base64(std::string_view bytes);

}  // namespace memprof::inline MEMPROF_ABI::detail
