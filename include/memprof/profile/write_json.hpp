#pragma once

#include <memprof/config.hpp>
#include <memprof/profile/profile.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

/// @file
/// Writes a profile as JSON: docs/profile.md describes the format, docs/profile.schema.json is its schema. A program that reads
/// profiles includes <memprof/profile/json.hpp>, which takes far longer to compile.
///
/// Bytes, counts and addresses are integers and keep all 64 bits; enumerations are names. Each invalid part of a text that is not
/// UTF-8 (an operation's name may be any bytes) becomes U+FFFD; only then does a profile read back differ. A number that is not
/// finite is written as null and read back as not-a-number.

namespace memprof::inline MEMPROF_ABI {

/// Value of the key "format".
inline constexpr std::string_view json_format = "memprof-profile";

/// Value of the key "version". It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t json_version = 2;

/// A profile as JSON text, one line per value.
[[nodiscard]] MEMPROF_SEPARABLE std::string to_json_text(const profile& source);

/// Writes a profile to a file as JSON. If that fails, an existing file is left unchanged. Also works for a path such as
/// /dev/stdout. Errors name the path and the reason.
MEMPROF_SEPARABLE void write_json(const profile& source, const std::filesystem::path& path);

}  // namespace memprof::inline MEMPROF_ABI

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/profile/json_text.hpp>
#endif
