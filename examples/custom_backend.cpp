// A custom source of events: a fixed pool of buffers, as used by data loaders, tells memprof when a buffer is taken and returned.
// A backend is no more than this; memprof does everything about peaks, owners and reports.
#include <memprof/memprof.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <string_view>

namespace {

/// Eight buffers of 1 MiB, each either free or taken.
class buffer_pool {
 public:
  static constexpr std::size_t buffer_bytes = 1 << 20;

  /// The observer; null while there is none.
  struct observer {
    memprof::extend::event_sink writer;
    memprof::memory_space space{"buffers"};
  };
  observer* watched_by = nullptr;

  [[nodiscard]] std::byte* take() {
    for (buffer& each : buffers_) {
      if (each.is_taken) continue;
      each.is_taken = true;
      if (watched_by != nullptr) watched_by->writer.allocate(watched_by->space, each.bytes.data(), buffer_bytes);  // after it
      return each.bytes.data();
    }
    return nullptr;
  }

  void give_back(const std::byte* taken) {
    for (buffer& each : buffers_) {
      if (each.bytes.data() != taken) continue;
      if (watched_by != nullptr) watched_by->writer.deallocate(watched_by->space, taken, buffer_bytes);  // before it
      each.is_taken = false;
    }
  }

 private:
  struct buffer {
    bool is_taken = false;
    std::array<std::byte, buffer_bytes> bytes{};
  };
  std::array<buffer, 8> buffers_;
};

buffer_pool pool;

/// Models memprof::extend::backend: a capture switches it on when it begins and off when it ends.
struct buffer_pool_backend {
  static constexpr std::string_view name = "buffer_pool";

  void attach(memprof::extend::event_sink& writer, const memprof::capture_options&) {
    observer.writer = writer;
    pool.watched_by = &observer;
  }
  void detach(memprof::extend::event_sink&) noexcept { pool.watched_by = nullptr; }
  void report_facts(memprof::extend::event_sink&) {}  // it has nothing but events

  buffer_pool::observer observer{};
};

static_assert(memprof::extend::backend<buffer_pool_backend>);

}  // namespace

int main() {
  auto capture = memprof::begin_capture<buffer_pool_backend>();
  std::byte* batch = nullptr;
  {
    const auto loading = memprof::track_operation<"load_batch">();
    std::byte* const raw = pool.take();
    batch = pool.take();
    pool.give_back(raw);
  }
  memprof::snapshot("LOAD");
  pool.give_back(batch);
  capture.end();
  memprof::print_memory_usage();
  const bool is_right = capture.profile().space("buffers").cumulative_peak == 2 * buffer_pool::buffer_bytes;
  if (!is_right) std::fputs("the peak is not two buffers\n", stderr);
  return is_right ? 0 : 1;
}
