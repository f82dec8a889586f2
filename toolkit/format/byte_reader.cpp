#include <memprof/config.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/byte_reader.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

byte_reader::byte_reader(std::FILE* file, std::filesystem::path path) : file_(file), path_(std::move(path)) {
  if (std::fseek(file_, 0, SEEK_END) == 0) {
    const long end = std::ftell(file_);
    size_ = end < 0 ? 0 : static_cast<std::uint64_t>(end);
  }
  std::rewind(file_);
}

bool byte_reader::next(std::string& out, std::uint64_t size) {
  has_run_out_ = has_run_out_ || size > left();
  if (size > left()) return false;
  out.clear();
  while (out.size() < size) {
    if (position_ == filled_ && !fill()) return false;
    const std::size_t part = std::min<std::size_t>(size - out.size(), filled_ - position_);
    out.append(buffer_.data() + position_, part);
    position_ += part;
  }
  return true;
}

bool byte_reader::next_number(std::uint64_t& value, int size) {
  value = 0;
  for (int byte = 0; byte < size; ++byte) {
    const int read = next();
    if (read < 0) return false;
    value |= static_cast<std::uint64_t>(read) << (8 * byte);
  }
  return true;
}

bool byte_reader::fill() {
  before_ += filled_;
  position_ = 0;
  filled_ = std::fread(buffer_.data(), 1, buffer_.size(), file_);
  if (filled_ == 0 && std::ferror(file_) != 0) raise_about_file("read", path_, reason_in_errno());
  return filled_ != 0;
}

bool next_line(byte_reader& in, std::string& line, std::uint64_t number) {
  constexpr std::size_t max_kept = std::size_t{1} << 20;
  constexpr std::uint64_t most = std::uint64_t{64} << 20;
  line.clear();
  const std::uint64_t begin = in.offset();
  int byte = in.next();
  for (; byte >= 0 && byte != '\n'; byte = in.next()) {
    if (line.size() < max_kept) {
      line += static_cast<char>(byte);
    } else if (in.offset() - begin > most) {
      raise_about_file("read", in.path(),
                       "line " + std::to_string(number) + ": longer than " + std::to_string(most) + " bytes; this is not a log");
    }
  }
  return byte >= 0 || !line.empty();
}

}  // namespace memprof::inline MEMPROF_ABI::detail
