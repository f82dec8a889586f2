#pragma once

#include <memprof/detail/error.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <protozero/exception.hpp>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

/// @file
/// Needs protozero (CMake: the component `protozero`, target `memprof::protozero`).

namespace memprof::inline MEMPROF_ABI::detail {

/// The file that contains the messages, so that an error can give the offset.
class protobuf_file {
 public:
  protobuf_file(std::string_view bytes, std::filesystem::path path) : bytes_(bytes), path_(std::move(path)) {}

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  [[nodiscard]] std::uint64_t offset_of(const char* place) const noexcept {
    return static_cast<std::uint64_t>(place - bytes_.data());
  }
  [[noreturn]] void raise_at(const char* place, std::string_view message, const std::string& what) const {
    raise("cannot read '" + path_.string() + "': byte " + std::to_string(offset_of(place)) + ", in " + std::string{message} +
          ": " + what);
  }

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
  [[nodiscard]] bool next() {
    if (next_ == end_ || is_cut_) return false;
    begin_ = next_;
    std::uint64_t key = 0;
    if (!varint(key)) return false;
    if (key >> 32 != 0 || key >> 3 == 0) fail("invalid field number " + std::to_string(key >> 3));
    field_ = static_cast<std::uint32_t>(key >> 3);
    type_ = static_cast<protozero::pbf_wire_type>(key & 7);
    switch (type_) {
      case protozero::pbf_wire_type::varint: return varint(number_);
      case protozero::pbf_wire_type::length_delimited: return varint(number_) && take(number_);
      case protozero::pbf_wire_type::fixed64: return take(8) && !is_cut_;
      case protozero::pbf_wire_type::fixed32: return take(4) && !is_cut_;
      default: fail("field " + std::to_string(field_) + " has unknown wire type " + std::to_string(key & 7));
    }
  }
  [[nodiscard]] std::uint32_t field() const noexcept { return field_; }

  [[nodiscard]] std::uint64_t unsigned_integer() const {
    expect(protozero::pbf_wire_type::varint, "a number");
    return number_;
  }
  [[nodiscard]] std::int64_t integer() const { return static_cast<std::int64_t>(unsigned_integer()); }
  [[nodiscard]] bool boolean() const { return unsigned_integer() != 0; }
  /// A text or the bytes of a message, or as much of them as there is.
  [[nodiscard]] std::string_view text() const {
    expect(protozero::pbf_wire_type::length_delimited, "a string or a message");
    return view_;
  }
  [[nodiscard]] protobuf_reader message(const char* name) const { return {*file_, text(), name, is_cut_}; }
  /// Calls `visit(std::int64_t)` for each number of a repeated field, packed or not.
  template <class Visitor>
  void each_integer(Visitor&& visit) const {
    if (type_ != protozero::pbf_wire_type::length_delimited) return visit(integer());
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
  /// Reads a number; false if the file is cut off within it.
  [[nodiscard]] bool varint(std::uint64_t& value) {
    try {
      value = protozero::decode_varint(&next_, end_);
      return true;
    } catch (const protozero::end_of_buffer_exception&) {
      return ends_early("a number");
    } catch (const protozero::varint_too_long_exception&) {
      fail("varint longer than ten bytes");
    }
  }
  [[nodiscard]] bool take(std::uint64_t size) {
    const auto left = static_cast<std::uint64_t>(end_ - next_);
    if (size > left) (void)ends_early(("field " + std::to_string(field_) + ", of " + std::to_string(size) + " bytes,").c_str());
    const auto taken = static_cast<std::size_t>(size > left ? left : size);
    view_ = {next_, taken};
    next_ += taken;
    return true;
  }
  [[nodiscard]] bool ends_early(const char* what) {
    if (!may_be_cut_) fail(std::string{what} + " extends past the end");
    is_cut_ = true;
    return false;
  }
  void expect(protozero::pbf_wire_type type, const char* what) const {
    if (type_ != type) fail("field " + std::to_string(field_) + " is not " + what);
  }

  const protobuf_file* file_;
  const char* next_;
  const char* end_;
  const char* message_;
  const char* begin_ = nullptr;
  std::uint64_t number_ = 0;
  std::string_view view_;
  std::uint32_t field_ = 0;
  protozero::pbf_wire_type type_ = protozero::pbf_wire_type::unknown;
  bool may_be_cut_;
  bool is_cut_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
