#pragma once

#include <memprof/record/phantom_addresses.hpp>
#include <memprof/record/registry.hpp>

#include <cstddef>
#include <new>
#include <string_view>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#include <csignal>
#endif

/// @file
/// Prepares a process for captures with `run_mode::no_dispatch`: reserves the addresses, and explains what a touch of one means.

#if defined(__unix__) || defined(__APPLE__)
namespace memprof::abi_1 {

/// The fault handler shared by all parts of this process. Each part has its own copy of the code that explains; if each installed
/// its copy in front of the others, a fault would circulate between them.
struct fault_handling {
  struct sigaction previous {};                       ///< handler to call next
  void (*explain)(int, siginfo_t*, void*) = nullptr;  ///< the copy installed last; null before the first capture
};

[[gnu::visibility("default")]] inline constinit fault_handling process_fault_handling{};

}  // namespace memprof::abi_1
#endif

namespace memprof::inline MEMPROF_ABI::detail {

#if defined(__unix__) || defined(__APPLE__)
/// Explains a fault at a reserved address, then restores the previous handler: the instruction is retried and faults again.
inline void explain_fault(int number, siginfo_t* info, void*) noexcept {
  const phantom_addresses* const reserved = abi_1::process_registry.phantom.load(std::memory_order_acquire);
  if (reserved != nullptr && reserved->contains(info->si_addr)) {
    constexpr std::string_view text =
        "memprof: the program touched memory that a NO_DISPATCH capture only counted: it was never allocated. Guard the work on "
        "tensors with `if (memprof::dispatching())`. The faulting instruction shows where.\n";
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  }
  ::sigaction(number, &abi_1::process_fault_handling.previous, nullptr);
}

/// Installs the explanation in front of the current fault handler, unless it is already there. Under the registry's lock.
inline void install_fault_handler() noexcept {
  struct sigaction present {};
  if (::sigaction(SIGSEGV, nullptr, &present) != 0) return;
  abi_1::fault_handling& shared = abi_1::process_fault_handling;
  const bool is_installed = (present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == shared.explain;
  if (is_installed && shared.explain != nullptr) return;
  struct sigaction explain {};
  explain.sa_sigaction = explain_fault;
  explain.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&explain.sa_mask);
  shared.previous = present;
  shared.explain = explain_fault;
  ::sigaction(SIGSEGV, &explain, nullptr);
}
#else
inline void install_fault_handler() noexcept {}
#endif

/// Reserves the addresses at the first NO_DISPATCH capture. They stay for the life of the process, because blocks may be freed
/// after the capture. False if the system has no room. Under the lock.
[[nodiscard]] inline bool prepare_no_dispatch(registry& shared) noexcept {
  install_fault_handler();
  if (shared.phantom.load(std::memory_order_relaxed) != nullptr) return true;
  void* const pages = map_pages(sizeof(phantom_addresses));
  if (pages == nullptr) return false;
  auto* const reserved = new (pages) phantom_addresses;
  if (!reserved->is_usable()) {
    reserved->~phantom_addresses();
    unmap_pages(pages, sizeof(phantom_addresses));
    return false;
  }
  // Release pairs with the acquire loads of the threads that take and give back.
  shared.phantom.store(reserved, std::memory_order_release);
  return true;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
