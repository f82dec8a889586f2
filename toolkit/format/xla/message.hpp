#pragma once

#include <memprof/config.hpp>
#include <memprof/toolkit/format/xla/protobuf_file.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/pbf_reader.hpp>
#include <protozero/types.hpp>

/// @file
/// Needs protozero (CMake: the component `protozero`, target `memprof::protozero`).

namespace memprof::inline MEMPROF_ABI::detail {

/// A message of Protocol Buffers in a file, read in place, field by field, by protozero.
///
/// protozero trusts its callers to know the type of a field and the length of its bytes, and its errors have no place. Here
/// anything invalid is a `memprof::error` with the byte offset, and the message at the end of a file may be cut off.
class xla_message {
 public:
  /// `name` is for errors. With `may_be_cut`, the message may end early where the file is cut off.
  xla_message(const protobuf_file& file, std::string_view bytes, const char* name, bool may_be_cut = false) noexcept
      : file_(&file), rest_(bytes.data(), bytes.size()), name_(name), may_be_cut_(may_be_cut) {}

  /// Advances to the next field; false at the end, or where the file is cut off within a number.
  [[nodiscard]] bool next();
  [[nodiscard]] std::uint32_t field() const noexcept { return value_.tag(); }

  [[nodiscard]] std::uint64_t unsigned_integer() const;
  [[nodiscard]] std::int64_t integer() const { return static_cast<std::int64_t>(unsigned_integer()); }
  [[nodiscard]] bool boolean() const { return unsigned_integer() != 0; }
  /// A text or the bytes of a message, or as much of them as there is.
  [[nodiscard]] std::string_view text() const;
  [[nodiscard]] xla_message message(const char* name) const { return {*file_, text(), name, is_cut_}; }
  /// The numbers of a repeated field, packed or not.
  [[nodiscard]] std::vector<std::int64_t> integers() const;

  /// Whether the current field is cut off with the file.
  [[nodiscard]] bool is_cut() const noexcept { return is_cut_; }
  /// Raises an error about the current field.
  [[noreturn]] void fail(const std::string& what) const { file_->raise_at(begin_, name_, what); }

 private:
  void take_bytes();
  void expect_short_key() const;
  [[nodiscard]] bool ends_early(const std::string& what);
  void expect(protozero::pbf_wire_type type, const char* what) const;

  const protobuf_file* file_;
  protozero::pbf_reader rest_;   ///< behind the current field
  protozero::pbf_reader value_;  ///< at the value of the current field
  std::string_view bytes_;       ///< of the current field, if it has a length
  const char* name_;
  const char* begin_ = nullptr;
  bool may_be_cut_;
  bool is_cut_ = false;
};

}  // namespace memprof::inline MEMPROF_ABI::detail
