#pragma once

#include <memprof/record/recorder.hpp>

#include <utility>

namespace memprof::inline MEMPROF_ABI::detail {

/// What a capture calls on its backends, independent of their types.
struct backend_calls {
  void (*detach)(void* backends) noexcept;
  void (*report_facts)(void* backends);
  void (*destroy)(void* backends) noexcept;
};

/// Owns the backends of a capture, which outlive it for as long as its profile can be read. Call none of its functions under the
/// registry's lock: backends may call back.
class capture_backends {
 public:
  capture_backends() noexcept = default;
  capture_backends(void* backends, const backend_calls* calls) noexcept : backends_(backends), calls_(calls) {}
  capture_backends(capture_backends&& other) noexcept
      : backends_(other.backends_), calls_(other.calls_), is_attached_(other.is_attached_) {
    other.backends_ = nullptr;
  }
  capture_backends& operator=(capture_backends&& other) noexcept {
    std::swap(backends_, other.backends_);
    std::swap(calls_, other.calls_);
    std::swap(is_attached_, other.is_attached_);
    return *this;
  }
  ~capture_backends() {
    if (backends_ == nullptr) return;
    const recording_suppressor hidden;
    if (is_attached_) calls_->detach(backends_);
    calls_->destroy(backends_);
  }

  [[nodiscard]] void* get() const noexcept { return backends_; }
  [[nodiscard]] const backend_calls* calls() const noexcept { return backends_ == nullptr ? nullptr : calls_; }
  [[nodiscard]] bool is_attached() const noexcept { return backends_ != nullptr && is_attached_; }
  /// Marks the backends as detached and returns whether they were attached: of two threads that end the capture, only one
  /// detaches them.
  [[nodiscard]] bool take_attached() noexcept { return backends_ != nullptr && std::exchange(is_attached_, false); }

 private:
  void* backends_ = nullptr;
  const backend_calls* calls_ = nullptr;
  bool is_attached_ = true;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
