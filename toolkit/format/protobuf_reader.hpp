#pragma once

#include <memprof/config.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

/// @file
/// Needs protozero (CMake: the component `protozero`, target `memprof::protozero`).

namespace memprof::inline MEMPROF_ABI::detail {

/// The file that contains the messages, so that an error can give the offset.
class protobuf_file {
 public:
  protobuf_file(std::string_view bytes, std::filesystem::path path) : bytes_(bytes), path_(std::move(path)) {}

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t offset_of(const char* place) const noexcept;
  [[noreturn]] void raise_at(const char* place, std::string_view message, const std::string& what) const;

 private:
  std::string_view bytes_;
  std::filesystem::path path_;
};

/// Reads a Protocol Buffers message in place, field by field (https://protobuf.dev/programming-guides/encoding).
///
/// Numbers are decoded by protozero. Its `pbf_reader` is not used, since it holds lengths in 32 bits and trusts callers to know
/// the type of a field. Anything invalid is a `memprof::error` with the byte offset.
class protobuf_reader {
 public:
  /// `message` is its name for errors. With `may_be_cut`, the message may end early where the file is cut off.
  protobuf_reader(const protobuf_file& file, std::string_view bytes, const char* message, bool may_be_cut = false) noexcept
      : file_(&file), next_(bytes.data()), end_(bytes.data() + bytes.size()), message_(message), may_be_cut_(may_be_cut) {}

  /// Advances to the next field; false at the end, or where the file is cut off within a number.
  [[nodiscard]] bool next();
  [[nodiscard]] std::uint32_t field() const noexcept { return field_; }

  [[nodiscard]] std::uint64_t unsigned_integer() const;
  [[nodiscard]] std::int64_t integer() const { return static_cast<std::int64_t>(unsigned_integer()); }
  [[nodiscard]] bool boolean() const { return unsigned_integer() != 0; }
  /// A text or the bytes of a message, or as much of them as there is.
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] protobuf_reader message(const char* name) const { return {*file_, text(), name, is_cut_}; }
  /// Calls `visit(std::int64_t)` for each number of a repeated field, packed or not.
  template <class Visitor>
  void each_integer(Visitor&& visit) const {
    if (type_ != wire_type::length_delimited) return visit(integer());
    protobuf_reader list{*file_, text(), message_};
    while (list.next_ != list.end_) {
      list.begin_ = list.next_;
      std::uint64_t value = 0;
      (void)list.varint(value);
      visit(static_cast<std::int64_t>(value));
    }
  }

  /// Whether the current field is cut off with the file.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  /// Raises an error about the current field.
  [[noreturn]] void fail(const std::string& what) const { file_->raise_at(begin_, message_, what); }
  [[nodiscard]] const protobuf_file& file() const noexcept { return *file_; }

 private:
  enum class wire_type : std::uint8_t { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5, unknown = 99 };

  /// Reads a number; false if the file is cut off within it.
  [[nodiscard]] bool varint(std::uint64_t& value);
  [[nodiscard]] bool take(std::uint64_t size);
  [[nodiscard]] bool ends_early(const char* what);
  void expect(wire_type type, const char* what) const;

  const protobuf_file* file_;
  const char* next_;
  const char* end_;
  const char* message_;
  const char* begin_ = nullptr;
  std::uint64_t number_ = 0;
  std::string_view view_;
  std::uint32_t field_ = 0;
  wire_type type_ = wire_type::unknown;
  bool may_be_cut_;
  bool is_cut_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
