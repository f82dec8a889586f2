#pragma once

#include <memprof/config.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether a stream is a terminal that shows colours: not if `NO_COLOR` is set (https://no-color.org) or `TERM` is "dumb".
[[nodiscard]] inline bool shows_colors(std::FILE* stream) noexcept {
  if (::isatty(::fileno(stream)) != 1) return false;
  const char* const no_color = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && kind != nullptr && std::string_view{kind} != "dumb";
}

/// The width in columns of a stream's terminal; 0 if the stream is not a terminal, or one without a size.
[[nodiscard]] inline std::size_t terminal_columns(std::FILE* stream) noexcept {
  winsize size{};
  return ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
