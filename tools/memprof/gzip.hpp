#pragma once

#include <string>
#include <string_view>

namespace memprof_tool {

/// The bytes as a gzip member, compressed if the program was built with zlib. Throws `std::bad_alloc` if out of memory.
[[nodiscard]] std::string gzip(std::string_view bytes);

/// The comment in the header of what `gzip` has compressed: a file that begins so is memprof's.
inline constexpr std::string_view gzip_comment = "memprof";

}  // namespace memprof_tool
