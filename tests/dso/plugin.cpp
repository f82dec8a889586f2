#include <dso/interface.hpp>

#include <memprof/memprof.hpp>

namespace {

/// A backend whose code is unloaded if the plugin is.
struct plugin_backend {
  static constexpr const char* name = "plugin";
  void attach(memprof::extend::event_sink& writer, const memprof::capture_options&) {
    writer.allocate(memprof::memory_space{"plugin backend"}, this, 5);
  }
  void detach(memprof::extend::event_sink& writer) noexcept {
    writer.deallocate(memprof::memory_space{"plugin backend"}, this, 5);
  }
  void report_facts(memprof::extend::event_sink&) {}
};

}  // namespace

DSO_TEST_VISIBLE void plugin_allocate(std::size_t bytes) {
  static auto* const memory = new memprof::memory_resource{"dso"};
  auto scope = memprof::track_operation<"in plugin">();
  (void)memory->allocate(bytes);
}

DSO_TEST_VISIBLE void plugin_begin_capture() { memprof::begin_capture<plugin_backend>({.ring_capacity = 4}).release(); }
