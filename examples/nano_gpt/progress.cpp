#include <nano_gpt/progress.hpp>

#include <memprof/backend/no_dispatch.hpp>

#include <algorithm>
#include <cstdio>
#include <string>

#include <unistd.h>

namespace nano_gpt {

progress::progress(std::size_t steps)
    : steps_{steps}, terminal_{isatty(STDERR_FILENO) == 1}, has_losses_{memprof::dispatching()} {}

std::string progress::to_text(double loss) const {
  if (!has_losses_) return "unknown";
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", loss);
  return text;
}

void progress::show(double loss) {
  if (done_++ == 0) first_loss_ = loss;
  last_loss_ = loss;
  const bool is_end = done_ == 1 || done_ == steps_;
  const clock::time_point now = clock::now();
  if (terminal_) {
    if (!is_end && now - last_shown_ < std::chrono::milliseconds{100}) return;
  } else {
    if (!is_end && done_ % std::max<std::size_t>(1, steps_ / 10) != 0) return;
  }
  last_shown_ = now;
  std::fprintf(stderr, "%sstep %zu/%zu  loss %s  %.1f ms/step%s", terminal_ ? "\r" : "", done_, steps_, to_text(loss).c_str(),
               milliseconds_per_step(), terminal_ ? " " : "\n");
}

void progress::finish() const {
  if (terminal_) std::fputc('\n', stderr);
  if (!has_losses_) {
    std::printf("Loss: unknown, nothing was dispatched in %zu steps of %.1f ms\n", steps_, milliseconds_per_step());
    return;
  }
  std::printf("Loss: %.4f -> %.4f in %zu steps of %.1f ms\n", first_loss_, last_loss_, steps_, milliseconds_per_step());
}

double progress::milliseconds_per_step() const {
  const std::chrono::duration<double, std::milli> elapsed = clock::now() - start_;
  return elapsed.count() / static_cast<double>(std::max<std::size_t>(1, done_));
}

}  // namespace nano_gpt
