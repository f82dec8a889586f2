#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json_output.hpp>
#include <memprof/profile/profile.hpp>
#include <memprof/profile/write_json.hpp>

#include <filesystem>
#include <string>
#include <string_view>

/// @file
/// Implements <memprof/profile/write_json.hpp>.

namespace memprof::inline MEMPROF_ABI {

MEMPROF_SEPARABLE std::string to_json_text(const profile& source) {
  detail::json_output out;
  out.begin_object();
  out.key("format");
  out.value(json_format);
  out.key("version");
  out.value(json_version);
  for_each_field(source, [&](std::string_view name, const auto& field) {
    out.key(name);
    detail::put_json(out, field);
  });
  out.end_object();
  return out.take();
}

MEMPROF_SEPARABLE void write_json(const profile& source, const std::filesystem::path& path) {
  detail::replace_whole_file(path, to_json_text(source) + '\n');
}

}  // namespace memprof::inline MEMPROF_ABI
