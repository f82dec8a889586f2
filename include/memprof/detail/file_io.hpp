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

/// The system's text of an `errno`. A limit on the size of files, which few know of, is named.
inline std::string text_of_errno(int error) {
  std::string text = std::error_code(error, std::generic_category()).message();
  if (error == EFBIG) text += " (for RLIMIT_FSIZE: ulimit -f)";
  return text;
}

/// Why the last call of the C library failed.
inline std::string reason_in_errno() { return text_of_errno(errno); }

/// Maximum size of a hand-written file, in bytes.
inline constexpr std::size_t max_bytes_by_hand = 1 << 20;

/// Reads the rest of a file; `path` is its name for messages. Rejects a file with more than `max_bytes`, including an endless
/// one.
inline std::string read_whole_file(std::FILE* file, const std::filesystem::path& path,
                                   std::size_t max_bytes = std::numeric_limits<std::size_t>::max()) {
  std::string text;
  for (;;) {
    constexpr std::size_t chunk = 1 << 16;
    const std::size_t filled = text.size();
    text.resize(filled + chunk);
    const std::size_t got = std::fread(text.data() + filled, 1, chunk, file);
    text.resize(filled + got);
    if (text.size() > max_bytes) raise_about_file("read", path, "it has more than " + std::to_string(max_bytes) + " bytes");
    if (got == chunk) continue;
    if (std::ferror(file) != 0) raise_about_file("read", path, reason_in_errno());
    return text;
  }
}

/// Reads the file with that name; pipes work too.
inline std::string read_whole_file(const std::filesystem::path& path,
                                   std::size_t max_bytes = std::numeric_limits<std::size_t>::max()) {
  const file_handle file{std::fopen(path.c_str(), "rb")};
  if (!file) raise_about_file("read", path, reason_in_errno());
  return read_whole_file(file.get(), path, max_bytes);
}

/// Whether all of `text` was written to the file; if not, errno says why.
[[nodiscard]] inline bool write_text(std::FILE* file, std::string_view text) noexcept {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size();
}

/// Whether everything that `write(FILE*)` wrote, which it reports itself, reached the file. Closes the file in any case; on
/// failure, errno says why.
template <class Write>
[[nodiscard]] bool write_and_close(file_handle file, Write&& write) {
  return write(file.get()) && std::fclose(file.release()) == 0;
}

/// Creates a new, empty file next to `path` and stores its name in `temporary`. Null on failure, with the reason in errno.
inline file_handle create_beside(const std::filesystem::path& path, std::filesystem::path& temporary) {
  constexpr int attempts = 100;
  file_handle file;
  for (int attempt = 0; attempt < attempts && !file; ++attempt) {
    temporary = path;
    temporary += ".tmp" + std::to_string(attempt);
    // "x": the name may belong to a file of the user's, or to another process writing the same profile.
    file.reset(std::fopen(temporary.c_str(), "wbx"));
    if (!file && errno != EEXIST) break;
  }
  return file;
}

/// Removes the file with that name, if it is not empty, at the end of the scope.
struct removed_file_guard {
  const std::filesystem::path& path;

  ~removed_file_guard() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

/// Has `write(FILE*)`, which returns whether it succeeded, write `path` so that a failure leaves an existing file unchanged: it
/// writes a new file next to it, which then takes its name. Follows links and keeps permissions. Writes directly to a device or
/// pipe.
template <class Write>
void replace_file(const std::filesystem::path& path, Write&& write) {
  namespace fs = std::filesystem;
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (fs::is_directory(status)) raise_about_file("write", path, "it is a directory; name a file in it");

  // A rename onto /dev/stdout or /dev/null would replace the device with a file, and one onto a dangling link would replace the
  // link.
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
    // A rename would also replace a file that its owner has made read-only.
    if (!file_handle{std::fopen(target.c_str(), "ab")}) raise_about_file("write", path, reason_in_errno());
  }
  fs::path temporary;
  file_handle file = create_beside(target, temporary);
  if (!file) raise_about_file("write", path, reason_in_errno());
  const removed_file_guard leftover{temporary};
  if (!write_and_close(std::move(file), write)) raise_about_file("write", path, reason_in_errno());
  if (fs::exists(status)) fs::permissions(temporary, status.permissions(), failure);  // at worst, the defaults remain
  fs::rename(temporary, target, failure);
  if (failure) raise_about_file("write", path, failure.message());
  temporary.clear();  // another process may have taken that name by now
}

/// The same for a given text.
inline void replace_whole_file(const std::filesystem::path& path, std::string_view text) {
  replace_file(path, [text](std::FILE* file) { return write_text(file, text); });
}

}  // namespace memprof::inline MEMPROF_ABI::detail
