#pragma once

#include <string>
#include <string_view>

namespace memprof_tool {

/// The bytes as a gzip member: compressed where the program was built with zlib. Throws `std::bad_alloc` if there is no memory.
[[nodiscard]] std::string gzip(std::string_view bytes);

}  // namespace memprof_tool
