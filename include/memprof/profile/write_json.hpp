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
/// Bytes, counts and addresses are integers and keep all 64 bits; enumerations are names. Text that is not valid UTF-8 (the name
/// of an operation may be any bytes) is written with U+FFFD in the place of each invalid part, so only then a profile that is
/// read back differs. A number that is not finite is written as null and read back as not-a-number.

namespace memprof::inline MEMPROF_ABI {

/// What the key "format" says.
inline constexpr std::string_view json_format = "memprof-profile";

/// What the key "version" says. It changes when an older reader would misread a file; added keys do not change it.
inline constexpr std::int64_t json_version = 2;

/// A profile as JSON text, one line a value.
[[nodiscard]] MEMPROF_SEPARABLE std::string to_json_text(const profile& source);

/// Writes a profile to a file as JSON. If that fails, a file that was there before stays as it was. A path such as /dev/stdout
/// works too. Errors name the path and the reason.
MEMPROF_SEPARABLE void write_json(const profile& source, const std::filesystem::path& path);

}  // namespace memprof::inline MEMPROF_ABI

#if !MEMPROF_SEPARATE_COMPILATION
#include <memprof/profile/json_text.hpp>
#endif
