#pragma once

#include <memprof/trace/definitions.hpp>
#include <memprof/trace/fact_table.hpp>
#include <memprof/trace/varint.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace memprof::inline MEMPROF_ABI::detail {

/// A small table as the record of a trace, as `for_each_part` makes it, but without heap memory: for a thread that must not
/// allocate. Rows of integers and short texts.
template <std::size_t Room>
class fact_payload {
 public:
  /// The payload of a table of these rows; empty if there is no room for it.
  template <fact T>
  [[nodiscard]] std::string_view encode(const T* first, const T* last) noexcept {
    size_ = 0;
    fits_ = true;
    text(T::table);
    number(0);
    std::uint64_t columns = 0;
    T::columns(*first, [&](std::string_view, const auto&) { ++columns; });
    number(columns);
    T::columns(*first, [&](std::string_view name, const auto&) { text(name); });
    number(static_cast<std::uint64_t>(last - first));
    for (const T* row = first; row != last; ++row) {
      T::columns(*row, [&]<class Field>(std::string_view, const Field& field) {
        static_assert(std::is_integral_v<Field> || std::is_same_v<Field, std::string>);
        if constexpr (std::is_integral_v<Field>) {
          number(0);
          number(zigzag(static_cast<std::int64_t>(field)));
        } else {
          number(2);
          text(field);
        }
      });
    }
    return fits_ ? std::string_view{bytes_.data(), size_} : std::string_view{};
  }

 private:
  void number(std::uint64_t value) noexcept {
    unsigned char bytes[max_varint_bytes];
    put(bytes, static_cast<std::size_t>(put_varint(bytes, value) - bytes));
  }
  void text(std::string_view value) noexcept {
    number(value.size());
    put(value.data(), value.size());
  }
  void put(const void* bytes, std::size_t size) noexcept {
    fits_ = fits_ && size <= Room - size_;
    if (!fits_) return;
    std::memcpy(bytes_.data() + size_, bytes, size);
    size_ += size;
  }

  std::array<char, Room> bytes_;
  std::size_t size_ = 0;
  bool fits_ = true;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
