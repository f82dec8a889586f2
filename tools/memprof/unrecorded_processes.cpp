#include "unrecorded_processes.hpp"

#include "run_socket.hpp"

#include <sys/socket.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace memprof_tool {

unrecorded_processes::unrecorded_processes(const std::filesystem::path& folder) {
  socket_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return;
  const int yes = 1;
  const run_socket_address address{folder.native()};
  if (::setsockopt(socket_, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 && ::bind(socket_, address.get(), address.bytes) == 0)
    return;
  ::close(socket_);
  socket_ = -1;
}

unrecorded_processes::~unrecorded_processes() {
  (void)count();
  if (socket_ >= 0) ::close(socket_);
}

void unrecorded_processes::listen() {
  if (socket_ >= 0) thread_ = std::thread{[this] { hear(); }};
}

std::size_t unrecorded_processes::count() {
  if (thread_.joinable()) {
    ::shutdown(socket_, SHUT_RD);  // what has arrived can still be read
    thread_.join();
  }
  return heard_.size();
}

void unrecorded_processes::hear() {
  for (;;) {
    char byte = 0;
    ::iovec content{&byte, 1};
    alignas(::cmsghdr) char room[CMSG_SPACE(sizeof(::ucred))];
    ::msghdr message{};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
    const ::ssize_t got = ::recvmsg(socket_, &message, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    // The kernel says who it is, also where the process has another number for itself.
    const ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_CREDENTIALS) continue;
    ::ucred sender{};
    std::memcpy(&sender, CMSG_DATA(header), sizeof sender);
    heard_.insert(sender.pid);
  }
}

}  // namespace memprof_tool
