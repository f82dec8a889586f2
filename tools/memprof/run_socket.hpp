#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace memprof_tool {

/// Where `memprof run` hears of processes that could not write a trace: a socket named after the folder of the traces. Its name
/// is in no file system, and nobody needs a permission for it, so that it can be reached after `chroot` and `setuid`.
struct run_socket_address {
  explicit run_socket_address(std::string_view folder) noexcept {
    address.sun_family = AF_UNIX;
    const std::string_view name = folder.substr(folder.rfind('/') + 1);
    const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), length);  // after a zero
    bytes = static_cast<::socklen_t>(offsetof(::sockaddr_un, sun_path) + 1 + length);
  }

  [[nodiscard]] const ::sockaddr* get() const noexcept { return reinterpret_cast<const ::sockaddr*>(&address); }

  ::sockaddr_un address{};
  ::socklen_t bytes = 0;
};

}  // namespace memprof_tool
