#include <memprof/trace/encoder.hpp>

#include <memprof/trace/event.hpp>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

namespace memprof_tests::trace_encoder {

using memprof::detail::encoded_bytes;
using memprof::detail::ordered_event;
using memprof::extend::event;
using memprof::extend::event_kind;

namespace {

/// Events of `rings` threads that record at once, each thread's one after the other.
struct threads_events {
  std::vector<std::vector<event>> of_ring;
  std::vector<ordered_event> in_order;

  threads_events(std::uint32_t rings, std::size_t each, std::uint32_t seed) : of_ring(rings) {
    std::mt19937 random{seed};
    const auto below = [&](std::uint64_t end) { return std::uniform_int_distribution<std::uint64_t>{0, end - 1}(random); };
    std::uint64_t stamp = std::uint64_t{1} << 40;
    std::vector<std::uint32_t> turns;
    for (std::uint32_t ring = 0; ring < rings; ++ring) {
      of_ring[ring].reserve(each);
      turns.insert(turns.end(), each, ring);
    }
    std::shuffle(turns.begin(), turns.end(), random);
    for (const std::uint32_t ring : turns) {
      event made{};
      made.stamp = stamp += below(10) == 0 ? below(1'000'000) : below(300);
      made.kind = below(2) == 0 ? event_kind::allocate : event_kind::deallocate;
      made.address = 0x7f00'0000'0000 + 16 * below(2000);
      made.bytes = made.kind == event_kind::deallocate ? 0 : 8 * below(8);
      of_ring[ring].push_back(made);
      in_order.push_back({&of_ring[ring].back(), 3 * ring + 1});
    }
  }
};

/// What encoding leaves behind, in chunks of at most `room` bytes.
template <class Encode>
std::vector<std::vector<unsigned char>> chunks_of(std::size_t room, Encode&& encode) {
  std::vector<std::vector<unsigned char>> chunks;
  const auto encoder = std::make_unique<memprof::detail::trace_encoder>();
  for (bool is_done = false; !is_done;) {
    std::vector<unsigned char> bytes(room);
    encoder->restart();
    encoded_bytes out{bytes.data(), bytes.data() + bytes.size()};
    is_done = encode(*encoder, out);
    bytes.resize(static_cast<std::size_t>(out.next - bytes.data()));
    chunks.push_back(std::move(bytes));
  }
  return chunks;
}

}  // namespace

TEST_CASE("encoder: the events of several threads take the same bytes at once as one by one") {
  for (const std::uint32_t rings : {1U, 2U, 3U, 8U, 9U, 40U}) {
    for (const std::size_t room : {std::size_t{64}, std::size_t{5000}, std::size_t{1} << 20}) {
      const threads_events events{rings, 2000, rings};
      const ordered_event* const last = events.in_order.data() + events.in_order.size();
      const ordered_event* position = events.in_order.data();
      const auto one_by_one = chunks_of(room, [&](memprof::detail::trace_encoder& encoder, encoded_bytes& out) {
        for (; position != last; ++position) {
          const event* const own = position->recorded;
          if (encoder.encode(own, own + 1, position->ring, out) == own) return false;
        }
        return true;
      });
      position = events.in_order.data();
      const auto at_once = chunks_of(room, [&](memprof::detail::trace_encoder& encoder, encoded_bytes& out) {
        position = encoder.encode(position, last, out);
        return position == last;
      });
      INFO(rings << " rings, " << room << " bytes");
      REQUIRE(at_once == one_by_one);
    }
  }
}

}  // namespace memprof_tests::trace_encoder
