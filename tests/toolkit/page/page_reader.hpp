#pragma once

#include <memprof/detail/file_io.hpp>
#include <memprof/profile/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

/// @file
/// A page read back, by the formats' own documents: RFC 4648, RFC 1952 with stored blocks of RFC 1951, viewer/DATA.md.

namespace memprof_tests {

inline void expect_in_page(bool is_so, const char* what) {
  if (!is_so) throw std::runtime_error{std::string{"page: "} + what};
}

[[nodiscard]] inline std::string decoded_base64(std::string_view text) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  expect_in_page(text.size() % 4 == 0, "base64 comes in groups of four");
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    const std::size_t value = digits.find(digit);
    expect_in_page(value != std::string_view::npos, "a digit of base64");
    bits = bits << 6U | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 0xFFU);
  }
  return bytes;
}

/// Bit by bit, from the polynomial.
[[nodiscard]] inline std::uint32_t slow_crc32(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ (0xEDB88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

[[nodiscard]] inline std::string decoded_gzip(std::string_view member) {
  const auto number = [&](std::size_t at, int bytes) {
    std::uint32_t value = 0;
    for (int byte = 0; byte < bytes; ++byte) {
      value |= std::uint32_t{static_cast<unsigned char>(member.at(at + static_cast<std::size_t>(byte)))} << (8 * byte);
    }
    return value;
  };
  expect_in_page(number(0, 4) == 0x00088B1FU, "gzip, deflate, no flags");
  std::string bytes;
  std::size_t at = 10;
  for (bool is_last = false; !is_last;) {
    expect_in_page((number(at, 1) & ~1U) == 0, "a stored block");
    is_last = number(at, 1) == 1;
    const std::uint32_t length = number(at + 1, 2);
    expect_in_page(number(at + 3, 2) == (~length & 0xFFFFU), "a length and its complement");
    bytes += member.substr(at + 5, length);
    at += 5 + length;
  }
  expect_in_page(number(at, 4) == slow_crc32(bytes), "the checksum");
  expect_in_page(number(at + 4, 4) == bytes.size() && at + 8 == member.size(), "the size");
  return bytes;
}

using page_column = std::vector<std::int64_t>;
using page_table = std::map<std::string, page_column>;

/// Data of a page. Tables by name, frame and space.
struct page_reader {
  std::string text;
  nlohmann::ordered_json run;
  std::map<std::tuple<std::string, std::size_t, std::int64_t>, page_table> tables;

  explicit page_reader(const std::filesystem::path& path) : text(memprof::detail::read_whole_file(path)) {
    run = nlohmann::ordered_json::parse(decoded_gzip(decoded_base64(block("memprof-run"))));
    if (run.at("detail").is_null()) {
      expect_in_page(text.find("id=\"memprof-columns\"") == std::string::npos, "no columns without detail");
      return;
    }
    const std::string columns = decoded_gzip(decoded_base64(block("memprof-columns")));
    for (const auto& table : run["detail"]["tables"]) {
      page_table& decoded = tables[{table["name"], table["frame"], table["space"]}];
      for (const auto& column : table["columns"]) {
        const std::string_view bytes = std::string_view{columns}.substr(column["begin"], column["bytes"]);
        decoded[column["name"]] = decode(bytes, column["encoding"] == "delta");
        expect_in_page(decoded[column["name"]].size() == table["rows"].get<std::size_t>(), "a value for each row");
      }
    }
  }

  [[nodiscard]] const page_table& table(const std::string& name, std::size_t frame = 0, std::int64_t space = -1) const {
    return tables.at({name, frame, space});
  }

 private:
  [[nodiscard]] std::string_view block(const std::string& id) const {
    const std::string begin = "<script type=\"application/octet-stream\" id=\"" + id + "\">";
    const std::size_t at = text.find(begin);
    expect_in_page(at != std::string::npos && text.find(begin, at + 1) == std::string::npos, "a block of each kind");
    const std::size_t first = at + begin.size();
    return std::string_view{text}.substr(first, text.find('<', first) - first);
  }

  [[nodiscard]] static page_column decode(std::string_view bytes, bool is_delta) {
    page_column values;
    std::uint64_t last = 0;
    for (std::size_t at = 0; at < bytes.size();) {
      std::uint64_t value = 0;
      for (unsigned shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.at(at++));
        value |= std::uint64_t{byte & 0x7FU} << shift;
        if (byte < 0x80) break;
      }
      if (is_delta) value = last += value >> 1U ^ (0 - (value & 1U));
      values.push_back(static_cast<std::int64_t>(value));
    }
    return values;
  }
};

}  // namespace memprof_tests
