#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The checksum of gzip and PNG (CRC-32 of ISO 3309).
[[nodiscard]] std::uint32_t crc32(std::string_view bytes) noexcept;

/// `bytes` as an uncompressed gzip file (RFC 1952, stored blocks of RFC 1951), for formats that require gzip where size does not
/// matter.
[[nodiscard]] std::string gzip_stored(std::string_view bytes);

}  // namespace memprof::inline MEMPROF_ABI::detail
