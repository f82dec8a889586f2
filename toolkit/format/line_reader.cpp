#include <memprof/config.hpp>
#include <memprof/detail/file_io.hpp>
#include <memprof/toolkit/format/line_reader.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

bool line_reader::next() {
  carried_.clear();
  for (;;) {
    if (position_ == filled_ && !fill()) {
      line_ = carried_;
      is_cut_ = !carried_.empty();
      number_ += is_cut_ ? 1 : 0;
      return is_cut_;
    }
    const char* const begin = buffer_.data() + position_;
    const auto* const end = static_cast<const char*>(std::memchr(begin, '\n', filled_ - position_));
    const std::string_view part{begin, end == nullptr ? filled_ - position_ : static_cast<std::size_t>(end - begin)};
    position_ += part.size() + (end == nullptr ? 0 : 1);
    if (carried_.size() + part.size() > longest_) {
      ++number_;
      fail("longer than " + std::to_string(longest_) + " bytes");
    }
    if (end == nullptr || !carried_.empty()) carried_ += part;
    if (end == nullptr) continue;
    line_ = carried_.empty() ? part : std::string_view{carried_};
    ++number_;
    return true;
  }
}

void line_reader::fail(const std::string& reason) const {
  raise_about_file("read", path_, "line " + std::to_string(number_) + ": " + reason);
}

bool line_reader::fill() {
  position_ = 0;
  filled_ = std::fread(buffer_.data(), 1, buffer_.size(), file_);
  if (filled_ == 0 && std::ferror(file_) != 0) raise_about_file("read", path_, reason_in_errno());
  return filled_ != 0;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
