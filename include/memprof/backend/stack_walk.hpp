#pragma once

#include <memprof/config.hpp>
#include <memprof/trace/stack_name.hpp>

#if MEMPROF_ENABLED

#include <cstddef>
#include <cstdint>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>
#include <unwind.h>

namespace memprof::inline MEMPROF_ABI::detail {

#if defined(__linux__)

/// While it lives, a new file gets a descriptor of at least `lowest`. libunwind opens a pipe, to which it writes a byte from an
/// address that it does not trust. Should the program close all descriptors, as daemons do, and get the same number for a file of
/// its own, that byte would go there.
class low_numbers_taken {
 public:
  low_numbers_taken() noexcept {
    int number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (number >= 0 && number < lowest) {
      numbers_[count_++] = number;
      number = ::fcntl(number, F_DUPFD_CLOEXEC, 0);
    }
    if (number >= 0) ::close(number);
  }
  low_numbers_taken(const low_numbers_taken&) = delete;
  low_numbers_taken& operator=(const low_numbers_taken&) = delete;
  ~low_numbers_taken() {
    while (count_ != 0) ::close(numbers_[--count_]);
  }

 private:
  static constexpr int lowest = 256;

  int numbers_[lowest];
  int count_ = 0;
};

#endif

/// Walks the calling thread's stack. libunwind, where it is installed, remembers how to leave each function, and is some twenty
/// times faster than the compiler's own library. It is loaded privately: on a link line it would take over exceptions.
class stack_walker {
 public:
  /// Chooses a way and tries it: what the way does once only is then done. It may allocate.
  void choose() noexcept {
    void* frames[max_stack_frames];
#if defined(__linux__)
    if (backtrace_ == nullptr) {
      const low_numbers_taken filled;
      if (void* const library = ::dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL))
        backtrace_ = reinterpret_cast<decltype(backtrace_)>(::dlsym(library, "unw_backtrace"));
      (void)walk(frames, max_stack_frames);
    }
#endif
    (void)walk(frames, max_stack_frames);
  }

  [[nodiscard]] const char* way() const noexcept { return backtrace_ != nullptr ? "libunwind" : "libgcc"; }

  /// The addresses that functions return to, from the function that calls this one outwards, and their number.
  [[nodiscard, gnu::always_inline]] int walk(void** frames, int room) const noexcept {
    if (backtrace_ != nullptr) [[likely]]
      return backtrace_(frames, room);
    found_frames all{frames, room, 0};
    (void)::_Unwind_Backtrace(take_frame, &all);
    return all.count;
  }

 private:
  struct found_frames {
    void** frames;
    int room;
    int count;
  };

  static _Unwind_Reason_Code take_frame(_Unwind_Context* context, void* data) {
    auto& into = *static_cast<found_frames*>(data);
    if (into.count == into.room) return _URC_END_OF_STACK;
    const auto address = ::_Unwind_GetIP(context);
    if (address == 0) return _URC_END_OF_STACK;
    into.frames[into.count++] = reinterpret_cast<void*>(address);
    return _URC_NO_REASON;
  }

  int (*backtrace_)(void**, int) = nullptr;
};

}  // namespace memprof::inline MEMPROF_ABI::detail

#endif  // MEMPROF_ENABLED
