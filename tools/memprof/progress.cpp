#include "progress.hpp"

#include <memprof/report/text/text_format.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace memprof_tool {
namespace {

constexpr std::size_t longest_line = 78;

void write_to_terminal(const std::string& text) {
  // A terminal that has gone away is no reason to stop.
  [[maybe_unused]] const ::ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

progress::progress(const std::string& what, std::FILE* read) : what_{memprof::detail::on_one_line(what)} {
  if (::isatty(STDERR_FILENO) == 0) return;
  struct ::stat status = {};
  if (read != nullptr && ::fstat(::fileno(read), &status) == 0 && S_ISREG(status.st_mode)) {
    descriptor_ = ::fileno(read);
    size_ = static_cast<double>(status.st_size);
  }
  try {
    display_thread_ = std::thread{[this] { show_until_done(); }};
  } catch (const std::system_error&) {  // no thread, no progress line
  }
}

progress::~progress() {
  if (!display_thread_.joinable()) return;
  {
    const std::lock_guard guard{lock_};
    is_done_ = true;
  }
  done_.notify_one();
  display_thread_.join();
}

void progress::show_until_done() {
  constexpr std::chrono::milliseconds first{1000};
  constexpr std::chrono::milliseconds between{200};
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock guard{lock_};
  if (done_.wait_for(guard, first, [this] { return is_done_; })) return;
  do {
    seconds_ =
        static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begin).count());
    write_to_terminal('\r' + line() + "\033[K");
  } while (!done_.wait_for(guard, between, [this] { return is_done_; }));
  write_to_terminal("\r\033[K");
}

std::string progress::line() const {
  std::string how_far = "  " + std::to_string(seconds_) + " s";
  // The position says nothing if the file is not read sequentially.
  const ::off_t position = descriptor_ < 0 ? 0 : ::lseek(descriptor_, 0, SEEK_CUR);
  if (position > 0 && size_ > 0)
    how_far =
        "  " + std::to_string(static_cast<int>(std::min(100.0, 100 * static_cast<double>(position) / size_))) + " %" + how_far;
  std::string text = what_;
  if (text.size() + how_far.size() > longest_line) text = text.substr(0, longest_line - how_far.size() - 3) + "...";
  return text + how_far;
}

}  // namespace memprof_tool
