#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/protobuf_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

namespace memprof::inline MEMPROF_ABI::detail {

std::uint64_t protobuf_file::offset_of(const char* place) const noexcept {
  return static_cast<std::uint64_t>(place - bytes_.data());
}

void protobuf_file::raise_at(const char* place, std::string_view message, const std::string& what) const {
  raise("cannot read '" + path_.string() + "': byte " + std::to_string(offset_of(place)) + ", in " + std::string{message} + ": " +
        what);
}

bool protobuf_reader::next() {
  if (next_ == end_ || is_cut_) return false;
  begin_ = next_;
  std::uint64_t key = 0;
  if (!varint(key)) return false;
  if (key >> 32 != 0 || key >> 3 == 0) fail("invalid field number " + std::to_string(key >> 3));
  field_ = static_cast<std::uint32_t>(key >> 3);
  type_ = static_cast<wire_type>(key & 7);
  switch (type_) {
    case wire_type::varint: return varint(number_);
    case wire_type::length_delimited: return varint(number_) && take(number_);
    case wire_type::fixed64: return take(8) && !is_cut_;
    case wire_type::fixed32: return take(4) && !is_cut_;
    default: fail("field " + std::to_string(field_) + " has unknown wire type " + std::to_string(key & 7));
  }
}

std::uint64_t protobuf_reader::unsigned_integer() const {
  expect(wire_type::varint, "a number");
  return number_;
}

std::string_view protobuf_reader::text() const {
  expect(wire_type::length_delimited, "a string or a message");
  return view_;
}

bool protobuf_reader::varint(std::uint64_t& value) {
  try {
    value = protozero::decode_varint(&next_, end_);
    return true;
  } catch (const protozero::end_of_buffer_exception&) {
    return ends_early("a number");
  } catch (const protozero::varint_too_long_exception&) {
    fail("varint longer than ten bytes");
  }
}

bool protobuf_reader::take(std::uint64_t size) {
  const auto left = static_cast<std::uint64_t>(end_ - next_);
  if (size > left) (void)ends_early(("field " + std::to_string(field_) + ", of " + std::to_string(size) + " bytes,").c_str());
  const auto taken = static_cast<std::size_t>(size > left ? left : size);
  view_ = {next_, taken};
  next_ += taken;
  return true;
}

bool protobuf_reader::ends_early(const char* what) {
  if (!may_be_cut_) fail(std::string{what} + " extends past the end");
  is_cut_ = true;
  return false;
}

void protobuf_reader::expect(wire_type type, const char* what) const {
  if (type_ != type) fail("field " + std::to_string(field_) + " is not " + what);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
