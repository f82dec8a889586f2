#pragma once

#include <memprof/profile/json.hpp>
#include <memprof/trace/varint.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

/// The tables of a page: the bytes of their columns, and the position of each column. viewer/DATA.md describes the encoding.
class page_columns {
 public:
  /// Begins a table whose columns have `rows` rows. `space` is -1 if the table is not about a space.
  void begin_table(std::string_view name, std::size_t frame, std::int64_t space, std::size_t rows) {
    tables_.push_back({{"name", name}, {"frame", frame}, {"space", space}, {"rows", rows}, {"columns", json::array()}});
    rows_ = rows;
  }

  /// A column of small non-negative numbers; `value(row)` is called for each row in order.
  template <class Value>
  void plain(std::string_view name, Value&& value) {
    const std::size_t begin = bytes_.size();
    for (std::size_t row = 0; row < rows_; ++row) put(static_cast<std::uint64_t>(value(row)));
    end_column(name, "plain", begin);
  }

  /// A column of numbers that grow or repeat: differences are stored.
  template <class Value>
  void delta(std::string_view name, Value&& value) {
    const std::size_t begin = bytes_.size();
    std::uint64_t last = 0;  // unsigned: the difference of two extremes wraps, and wraps back in the reader
    for (std::size_t row = 0; row < rows_; ++row) {
      const auto next = static_cast<std::uint64_t>(value(row));
      put(zigzag(static_cast<std::int64_t>(next - last)));
      last = next;
    }
    end_column(name, "delta", begin);
  }

  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }
  [[nodiscard]] const nlohmann::ordered_json& tables() const noexcept { return tables_; }

 private:
  using json = nlohmann::ordered_json;

  void put(std::uint64_t value) {
    unsigned char encoded[max_varint_bytes];
    const unsigned char* const end = put_varint(encoded, value);
    bytes_.append(reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(end - encoded));
  }
  void end_column(std::string_view name, std::string_view encoding, std::size_t begin) {
    tables_.back()["columns"].push_back(
        {{"name", name}, {"encoding", encoding}, {"begin", begin}, {"bytes", bytes_.size() - begin}});
  }

  std::string bytes_;
  json tables_ = json::array();
  std::size_t rows_ = 0;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
