#pragma once

#include <memprof/detail/file_io.hpp>

#include <cstdio>
#include <string>

namespace memprof_tool {

/// The content of a gzip or zstd file as another file, which is unpacked while it is read and can be rewound. Null if `file`,
/// which must be at its beginning, is not packed. If the packed data is cut off or damaged, the returned file ends there, and
/// `damage` says why in a sentence without a final full stop. `file` and `damage` must outlive the returned file.
///
/// Throws `memprof::error` if the program was built without the library that this needs, `std::bad_alloc` if out of memory.
[[nodiscard]] memprof::detail::file_handle unpacked_file(std::FILE* file, const std::string& path, std::string& damage);

}  // namespace memprof_tool
