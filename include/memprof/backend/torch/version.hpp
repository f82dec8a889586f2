#pragma once

#include <memprof/config.hpp>

#include <torch/version.h>

#include <version>  // _GLIBCXX_USE_CXX11_ABI

/// @file
/// The requirements of the headers under `backend/torch` on libtorch, and nothing else: include this before any libtorch header,
/// so that its message comes first. Those headers test for individual members (`requires`), so a newer version needs no entry;
/// only what a kernel allocates hangs on version numbers.

#if !defined(TORCH_VERSION_MAJOR) || TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 1)
#error "<memprof/backend/torch.hpp> needs libtorch 2.1 or later; without it, omit this header: everything else in memprof works"
#endif

// The target memprof::torch sets this macro to the std::string that libtorch was built with.
#if defined(MEMPROF_TORCH_CXX11_ABI) && defined(_GLIBCXX_USE_CXX11_ABI)
#if MEMPROF_TORCH_CXX11_ABI != _GLIBCXX_USE_CXX11_ABI
#error "libtorch was built with a different _GLIBCXX_USE_CXX11_ABI than this file; leave that macro to the target memprof::torch"
#endif
#endif

namespace memprof::inline MEMPROF_ABI::detail {

/// Whether libtorch has at least this version.
[[nodiscard]] constexpr bool is_torch_at_least(int major, int minor) noexcept {
  return TORCH_VERSION_MAJOR > major || (TORCH_VERSION_MAJOR == major && TORCH_VERSION_MINOR >= minor);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
