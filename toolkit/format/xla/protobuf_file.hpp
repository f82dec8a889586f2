#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// The file that contains the messages, so that an error can give the offset.
class protobuf_file {
 public:
  protobuf_file(std::string_view bytes, std::filesystem::path path) : bytes_(bytes), path_(std::move(path)) {}

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t offset_of(const char* place) const noexcept;
  [[noreturn]] void raise_at(const char* place, std::string_view message, const std::string& what) const;

 private:
  std::string_view bytes_;
  std::filesystem::path path_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
