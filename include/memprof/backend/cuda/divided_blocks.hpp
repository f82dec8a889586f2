#pragma once

#include <memprof/config.hpp>
#include <memprof/record/block_parts.hpp>
#include <memprof/record/recorder.hpp>
#include <memprof/trace/annotation.hpp>
#include <memprof/trace/event.hpp>

#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

/// @file
/// Blocks whose parts come and go, as the regions of NVTX's heaps.

namespace memprof::inline MEMPROF_ABI::detail::cuda {

/// Records parts, and the rest between them, as blocks in place of the one that they divide; its own memory is hidden from
/// recording. Not synchronised. What adds parts throws `std::bad_alloc`, with nothing changed or recorded.
class divided_blocks {
 public:
  /// A block that is recorded as a whole: all of it is rest, of that name, which must live as long.
  void add(std::uint64_t block, std::uint64_t bytes, space_id space, const std::string* rest) {
    const recording_suppressor hidden;
    pieces_.insert_or_assign(block, piece{bytes, block, space, rest});
  }
  /// Forgets a block, whose records end otherwise.
  void forget(std::uint64_t block, std::uint64_t bytes) noexcept {
    const recording_suppressor hidden;
    pieces_.erase(pieces_.lower_bound(block), pieces_.lower_bound(block + bytes));
  }

  [[nodiscard]] bool has(std::uint64_t address) noexcept { return piece_at(address) != pieces_.end(); }

  /// Makes a part of what is rest until now. Returns whether it was.
  bool begin(std::uint64_t address, std::uint64_t bytes, const annotation& description) {
    const auto found = piece_at(address);
    if (found == pieces_.end() || bytes == 0) return false;
    const std::uint64_t begin = found->first;
    const piece whole = found->second;
    const std::uint64_t before = address - begin;
    if (whole.is_part || bytes > whole.bytes - before) return false;
    const std::uint64_t after = whole.bytes - before - bytes;
    auto part = found;
    {
      const recording_suppressor hidden;
      if (before != 0) part = pieces_.emplace(address, whole).first;
      added_piece undone{pieces_, before != 0 ? part : pieces_.end()};
      if (after != 0) pieces_.emplace(address + bytes, whole);
      undone.stays();
    }
    record_end(*found);
    if (before != 0) {
      found->second.bytes = before;
      record_rest(*found);
    }
    part->second.bytes = bytes;
    part->second.is_part = true;
    record_event({0, address, bytes, 0, event_kind::allocate, whole.space.value, description.category.tag()});
    record_description(whole.space.value, address, description);
    if (after != 0) {
      const auto rest = std::next(part);
      rest->second.bytes = after;
      record_rest(*rest);
    }
    return true;
  }

  /// Describes the part that begins at `address`, if there is one.
  void name(std::uint64_t address, const std::string* name) noexcept {
    const auto found = part_at(address);
    if (found == pieces_.end()) return;
    found->second.name = name;
    if (name != nullptr) record_description(found->second.space.value, address, {.name = *name});
  }

  /// Ends a part and begins it anew with another size and the same name.
  void resize(std::uint64_t address, std::uint64_t bytes) {
    const auto found = part_at(address);
    if (found == pieces_.end()) return;
    const std::string* const known = found->second.name;
    end(found);
    if (begin(address, bytes, {})) name(address, known);
  }

  void end(std::uint64_t address) noexcept {
    const auto found = part_at(address);
    if (found != pieces_.end()) end(found);
  }
  /// All parts that begin in [address, address + bytes).
  void end_all(std::uint64_t address, std::uint64_t bytes) noexcept {
    for (auto place = pieces_.lower_bound(address); place != pieces_.end() && place->first - address < bytes;)
      place = place->second.is_part ? end(place) : std::next(place);
  }

 private:
  struct piece {
    std::uint64_t bytes = 0;
    std::uint64_t block = 0;
    space_id space{0};
    const std::string* rest = nullptr;  ///< the name of what is no part of its block
    const std::string* name = nullptr;  ///< of a part; null: it has none, or one of a description
    bool is_part = false;
  };
  using places = std::map<std::uint64_t, piece>;

  /// Taken back where what comes next fails.
  class added_piece {
   public:
    added_piece(places& all, places::iterator added) noexcept : all_(all), added_(added) {}
    added_piece(const added_piece&) = delete;
    added_piece& operator=(const added_piece&) = delete;
    ~added_piece() {
      if (added_ != all_.end()) all_.erase(added_);
    }
    void stays() noexcept { added_ = all_.end(); }

   private:
    places& all_;
    places::iterator added_;
  };

  [[nodiscard]] places::iterator piece_at(std::uint64_t address) noexcept {
    const auto after = pieces_.upper_bound(address);
    if (after == pieces_.begin()) return pieces_.end();
    const auto found = std::prev(after);
    return address - found->first < found->second.bytes ? found : pieces_.end();
  }
  [[nodiscard]] places::iterator part_at(std::uint64_t address) noexcept {
    const auto found = pieces_.find(address);
    return found != pieces_.end() && found->second.is_part ? found : pieces_.end();
  }

  /// Merges a part with the rest on both sides. Returns the place after it.
  places::iterator end(places::iterator ended) noexcept {
    record_end(*ended);
    ended->second.is_part = false;
    ended->second.name = nullptr;
    const auto after = std::next(ended);
    if (after != pieces_.end() && is_rest_of(after->second, ended->second.block)) {
      record_end(*after);
      ended->second.bytes += after->second.bytes;
      erase(after);
    }
    if (ended != pieces_.begin()) {
      const auto before = std::prev(ended);
      if (is_rest_of(before->second, ended->second.block)) {
        record_end(*before);
        before->second.bytes += ended->second.bytes;
        erase(ended);
        ended = before;
      }
    }
    record_rest(*ended);
    return std::next(ended);
  }

  void erase(places::iterator place) noexcept {
    const recording_suppressor hidden;
    pieces_.erase(place);
  }
  [[nodiscard]] static bool is_rest_of(const piece& neighbour, std::uint64_t block) noexcept {
    return !neighbour.is_part && neighbour.block == block;
  }
  static void record_end(const places::value_type& ended) noexcept {
    record_event({0, ended.first, ended.second.bytes, 0, event_kind::deallocate, ended.second.space.value, 0});
  }
  static void record_rest(const places::value_type& rest) noexcept {
    const piece& known = rest.second;
    record_event({0, rest.first, known.bytes, 0, event_kind::allocate, known.space.value, 0});
    record_description(known.space.value, rest.first,
                       {.name = known.rest == nullptr ? std::string_view{"rest of the block"} : *known.rest});
  }

  places pieces_;
};

}  // namespace memprof::inline MEMPROF_ABI::detail::cuda
