#pragma once

#include <memprof/config.hpp>

#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The beginning of a text from a file in quotation marks, for messages. Control characters, which would cut the message off or
/// disturb the terminal, are written as "\x00".
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace memprof::inline MEMPROF_ABI::detail
