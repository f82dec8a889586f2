#pragma once

#include <memprof/detail/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

struct file_closer {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using file_handle = std::unique_ptr<std::FILE, file_closer>;

/// Raises "cannot `verb` 'path': `reason`".
[[noreturn]] inline void raise_about_file(const char* verb, const std::filesystem::path& path, const std::string& reason) {
  raise(std::string{"cannot "} + verb + " '" + path.string() + "': " + reason);
}

/// Why the last call of the C library failed.
inline std::string reason_in_errno() { return std::error_code(errno, std::generic_category()).message(); }

/// The most that a file which people write by hand may have.
inline constexpr std::size_t most_bytes_by_hand = 1 << 20;

/// What follows in a file; `path` is its name for messages. A file with more than `most_bytes` is refused, an endless one too.
inline std::string read_whole_file(std::FILE* file, const std::filesystem::path& path,
                                   std::size_t most_bytes = std::numeric_limits<std::size_t>::max()) {
  std::string text;
  for (;;) {
    constexpr std::size_t chunk = 1 << 16;
    const std::size_t filled = text.size();
    text.resize(filled + chunk);
    const std::size_t got = std::fread(text.data() + filled, 1, chunk, file);
    text.resize(filled + got);
    if (text.size() > most_bytes) raise_about_file("read", path, "it has more than " + std::to_string(most_bytes) + " bytes");
    if (got == chunk) continue;
    if (std::ferror(file) != 0) raise_about_file("read", path, reason_in_errno());
    return text;
  }
}

/// The content of the file of that name, pipes included.
inline std::string read_whole_file(const std::filesystem::path& path,
                                   std::size_t most_bytes = std::numeric_limits<std::size_t>::max()) {
  const file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) raise_about_file("read", path, reason_in_errno());
  return read_whole_file(file.get(), path, most_bytes);
}

/// Whether all of `text` went to the file; if not, errno says why.
[[nodiscard]] inline bool write_text(std::FILE* file, std::string_view text) noexcept {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size();
}

/// Whether all that `write(FILE*)` wrote, as it says itself, reached the file, which is closed in any case; if not, errno says
/// why.
template <class Write>
[[nodiscard]] bool write_and_close(file_handle file, Write&& write) {
  return write(file.get()) && std::fclose(file.release()) == 0;
}

/// A new, empty file beside `path`, whose name goes to `temporary`. Null, with the reason in errno, if there can be none.
inline file_handle create_beside(const std::filesystem::path& path, std::filesystem::path& temporary) {
  constexpr int attempts = 100;
  file_handle file;
  for (int attempt = 0; attempt < attempts && !file; ++attempt) {
    temporary = path;
    temporary += ".tmp" + std::to_string(attempt);
    // "x": the name may belong to a file of the user's, or to another process that writes the same profile.
    file.reset(std::fopen(temporary.c_str(), "wbx"));
    if (!file && errno != EEXIST) break;
  }
  return file;
}

/// Lets `write(FILE*)`, which returns whether it could, write `path` such that a failure leaves an existing file as it was: first
/// a new file beside it, which then takes its name. Links are followed, permissions kept. A device or pipe is written directly.
template <class Write>
void replace_file(const std::filesystem::path& path, Write&& write) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (fs::is_directory(status)) raise_about_file("write", path, "it is a directory; name a file in it");

  // A rename onto /dev/stdout or /dev/null would put a file in the device's place, and one onto a link without a target the
  // link's.
  const bool is_dangling_link = !fs::exists(status) && fs::is_symlink(fs::symlink_status(path, failure));
  if (is_dangling_link || (fs::exists(status) && !fs::is_regular_file(status))) {
    file_handle device{std::fopen(path.c_str(), "wb")};
    if (!device || !write_and_close(std::move(device), write)) raise_about_file("write", path, reason_in_errno());
    return;
  }

  fs::path target = path;
  if (fs::exists(status)) {
    target = fs::canonical(path, failure);
    if (failure) raise_about_file("write", path, failure.message());
    // A rename would also replace a file that its owner made read-only.
    if (!file_handle{std::fopen(target.c_str(), "ab")}) raise_about_file("write", path, reason_in_errno());
  }
  fs::path temporary;
  file_handle file = create_beside(target, temporary);
  if (!file) raise_about_file("write", path, reason_in_errno());
  if (!write_and_close(std::move(file), write)) {
    const std::string reason = reason_in_errno();
    fs::remove(temporary, failure);
    raise_about_file("write", path, reason);
  }
  if (fs::exists(status)) fs::permissions(temporary, status.permissions(), failure);  // at worst they are the default ones
  fs::rename(temporary, target, failure);
  if (failure) {
    const std::string reason = failure.message();
    fs::remove(temporary, failure);
    raise_about_file("write", path, reason);
  }
}

/// The same with a text.
inline void replace_whole_file(const std::filesystem::path& path, std::string_view text) {
  replace_file(path, [text](std::FILE* file) { return write_text(file, text); });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
