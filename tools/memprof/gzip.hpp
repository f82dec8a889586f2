#pragma once

#include <string>
#include <string_view>

namespace memprof_tool {

/// The bytes as a gzip member, compressed if the program was built with zlib. Throws `std::bad_alloc` if out of memory.
[[nodiscard]] std::string gzip(std::string_view bytes);

}  // namespace memprof_tool
