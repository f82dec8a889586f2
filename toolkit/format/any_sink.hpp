#pragma once

#include <memprof/toolkit/format/byte_sink.hpp>

#include <concepts>
#include <string_view>

namespace memprof::inline MEMPROF_ABI {

/// Any `byte_sink`, by reference: the one type for which writers of formats are compiled. The sink must outlive it.
class any_sink {
 public:
  template <class Sink>
  requires(!std::same_as<Sink, any_sink> && byte_sink<Sink>) any_sink(Sink& sink)
      : sink_(&sink), write_([](void* to, std::string_view bytes) { static_cast<Sink*>(to)->write(bytes); }) {}

  void write(std::string_view bytes) { write_(sink_, bytes); }

 private:
  void* sink_;
  void (*write_)(void* to, std::string_view bytes);
};

}  // namespace memprof::inline MEMPROF_ABI
