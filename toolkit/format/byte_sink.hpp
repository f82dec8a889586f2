#pragma once

#include <memprof/config.hpp>

#include <concepts>
#include <cstdio>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// The destination of a format writer's bytes.
template <class T>
concept byte_sink = requires(T sink, std::string_view bytes) {
  sink.write(bytes);
};

/// Refers to any sink, so that a writer is compiled once; the sink must outlive it. Costs an indirect call for each piece, and
/// writers collect pieces.
class byte_sink_view {
 public:
  template <class Sink>
  requires(!std::same_as<Sink, byte_sink_view> && byte_sink<Sink>) byte_sink_view(Sink& sink)
      : sink_(&sink), write_([](void* to, std::string_view bytes) { static_cast<Sink*>(to)->write(bytes); }) {}
  void write(std::string_view bytes) const { write_(sink_, bytes); }

 private:
  void* sink_;
  void (*write_)(void* sink, std::string_view bytes);
};
static_assert(byte_sink<byte_sink_view>);

/// Writes to an open file that the caller keeps. Check `is_good` at the end: on failure, errno has the reason.
class file_sink {
 public:
  explicit file_sink(std::FILE* file) noexcept : file_(file) {}
  void write(std::string_view bytes) noexcept {
    is_good_ = is_good_ && std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  }
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }

 private:
  std::FILE* file_;
  bool is_good_ = true;
};

/// Keeps everything in a string.
struct text_sink {
  std::string text;

  void write(std::string_view bytes) { text.append(bytes); }
};

}  // namespace memprof::inline MEMPROF_ABI
