#pragma once

#include <memprof/detail/file_io.hpp>

#include <cstdio>
#include <string>

namespace memprof_tool {

/// What a file that is packed with gzip or zstd holds, as another file, which is unpacked while it is read and can be read again
/// from its begin. Null if the file, which stands at its begin, is not packed. Where the packed data ends too early or is
/// damaged, the other file ends, and `damage` says so in a sentence without its stop. `file` and `damage` must outlive it.
///
/// Throws `memprof::error` if the program was built without what it takes, `std::bad_alloc` if there is no memory.
[[nodiscard]] memprof::detail::file_handle unpacked_file(std::FILE* file, const std::string& path, std::string& damage);

}  // namespace memprof_tool
