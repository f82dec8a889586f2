#include "opened_recording.hpp"

#include "exported_file.hpp"

#include <memprof/detail/error.hpp>
#include <memprof/detail/file_io.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace memprof_tool {

namespace {

/// Raises an error for directories and devices. Terminals and pipes pass.
void check_is_file(std::FILE* file, const std::string& path) {
  using memprof::detail::raise_about_file;
  struct ::stat status = {};
  if (::fstat(::fileno(file), &status) != 0) raise_about_file("read", path, memprof::detail::reason_in_errno());
  if (S_ISDIR(status.st_mode)) refuse_tables(path);
  if (S_ISDIR(status.st_mode)) raise_about_file("read", path, "Is a directory; name a file in it");
  if ((S_ISCHR(status.st_mode) && ::isatty(::fileno(file)) == 0) || S_ISBLK(status.st_mode))
    raise_about_file("read", path, "it is a device; expected a recording");
}

/// Copies the content of a pipe to a file that can be read more than once. Refuses at once a stream that is neither text nor
/// begins like a known binary format: it might never end.
memprof::detail::file_handle copy_of(std::FILE* pipe, const std::string& path) {
  using namespace memprof::detail;
  using memprof::detail::file_handle;  // <fcntl.h> has another one
  file_handle copy{std::tmpfile()};
  if (!copy) raise_about_file("read", path, "it is a pipe, and no temporary file can be created for it: " + reason_in_errno());
  std::array<char, 1 << 16> buffer{};
  bool is_first = true;
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    const std::string_view bytes{buffer.data(), got};
    constexpr std::string_view first_bytes_of_formats = "\x89\x80\n";  // traces, pickles, profiles of XLA
    if (is_first && bytes.find('\0') != bytes.npos && first_bytes_of_formats.find(bytes[0]) == bytes.npos) {
      refuse_export(bytes, path);
      raise_about_file("read", path,
                       "byte " + std::to_string(bytes.find('\0')) + " is 0: it is neither text nor a known recording");
    }
    is_first = false;
    if (!write_text(copy.get(), bytes)) raise_about_file("read", path, "cannot write a temporary copy: " + reason_in_errno());
  }
  if (std::ferror(pipe) != 0) raise_about_file("read", path, reason_in_errno());
  std::rewind(copy.get());
  return copy;
}

}  // namespace

namespace {

/// The standard input, any number of times: a pipe can be read only once.
memprof::detail::file_handle open_standard_input() {
  using memprof::detail::file_handle;
  static const file_handle copy = [] {
    file_handle once{::fdopen(::dup(STDIN_FILENO), "rb")};
    if (once && std::fseek(once.get(), 0, SEEK_CUR) != 0) once = copy_of(once.get(), "-");
    return once;
  }();
  if (!copy) return nullptr;
  const std::string name = "/proc/self/fd/" + std::to_string(::fileno(copy.get()));
  if (file_handle again{std::fopen(name.c_str(), "rb")}) return again;
  return file_handle{::fdopen(::dup(::fileno(copy.get())), "rb")};  // a shell opened what this user may not
}

}  // namespace

memprof::detail::file_handle open_recording(const std::string& path) {
  using namespace memprof::detail;
  using memprof::detail::file_handle;  // <fcntl.h> has another one
  file_handle file{path == "-" ? open_standard_input() : file_handle{std::fopen(path.c_str(), "rb")}};
  if (!file) raise_about_file("read", path, reason_in_errno());
  check_is_file(file.get(), path);
  if (std::fseek(file.get(), 0, SEEK_CUR) != 0) file = copy_of(file.get(), path);
  check_encoding(file.get(), path);
  refuse_export(file.get(), path);
  return file;
}

void check_encoding(std::FILE* file, const std::string& path) {
  using namespace memprof::detail;
  using namespace std::string_view_literals;
  std::array<char, 4> first{};
  const std::size_t got = std::fread(first.data(), 1, first.size(), file);
  if (std::ferror(file) != 0) raise_about_file("read", path, reason_in_errno());
  std::rewind(file);
  const std::string_view begin{first.data(), got};
  // The mark of little-endian UTF-32 begins with that of UTF-16.
  const char* const encoding = begin == "\xFF\xFE\0\0"sv || begin == "\0\0\xFE\xFF"sv               ? "UTF-32"
                               : begin.starts_with("\xFF\xFE"sv) || begin.starts_with("\xFE\xFF"sv) ? "UTF-16"
                                                                                                    : nullptr;
  if (encoding == nullptr) return;
  const std::string name = encoding;
  raise_about_file("read", path, "byte 0: it is " + name + "; expected UTF-8: convert it with iconv -f " + name + " -t UTF-8");
}

}  // namespace memprof_tool
