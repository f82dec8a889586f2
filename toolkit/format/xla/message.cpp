#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/toolkit/format/xla/message.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <protozero/exception.hpp>
#include <protozero/iterators.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

namespace memprof::inline MEMPROF_ABI::detail {

std::uint64_t protobuf_file::offset_of(const char* place) const noexcept {
  return static_cast<std::uint64_t>(place - bytes_.data());
}

void protobuf_file::raise_at(const char* place, std::string_view message, const std::string& what) const {
  raise("cannot read '" + path_.string() + "': byte " + std::to_string(offset_of(place)) + ", in " + std::string{message} + ": " +
        what);
}

bool xla_message::next() {
  if (is_cut_) return false;
  begin_ = rest_.data().data();
  try {
    if (!rest_.next()) return false;
    expect_short_key();
    value_ = rest_;
    if (value_.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
      take_bytes();
    } else {
      rest_.skip();
    }
    return true;
  } catch (const protozero::end_of_buffer_exception&) {
    return ends_early("a number");
  } catch (const protozero::varint_too_long_exception&) {
    fail("varint longer than ten bytes");
  } catch (const protozero::invalid_tag_exception&) {
    fail("invalid field number " + std::to_string(rest_.tag()));
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    expect_short_key();
    fail("field " + std::to_string(rest_.tag()) + " has unknown wire type " +
         std::to_string(static_cast<unsigned>(rest_.wire_type())));
  }
}

std::uint64_t xla_message::unsigned_integer() const {
  expect(protozero::pbf_wire_type::varint, "a number");
  return protozero::pbf_reader{value_}.get_uint64();
}

std::string_view xla_message::text() const {
  expect(protozero::pbf_wire_type::length_delimited, "a string or a message");
  return bytes_;
}

std::vector<std::int64_t> xla_message::integers() const {
  if (!value_.has_wire_type(protozero::pbf_wire_type::length_delimited)) return {integer()};
  using iterator = protozero::const_varint_iterator<std::int64_t>;
  const char* const end = bytes_.data() + bytes_.size();
  std::vector<std::int64_t> numbers;
  try {
    for (iterator at{bytes_.data(), end}; at != iterator{end, end}; ++at) numbers.push_back(*at);
  } catch (const protozero::end_of_buffer_exception&) {
    fail("a number extends past the end");
  } catch (const protozero::varint_too_long_exception&) {
    fail("varint longer than ten bytes");
  }
  return numbers;
}

/// The number of a field and its type have 32 bits; protozero takes those of a longer key.
void xla_message::expect_short_key() const {
  constexpr std::ptrdiff_t most_bytes = 5;
  if (rest_.data().data() - begin_ > most_bytes) fail("invalid field number: it has more than 32 bits");
}

/// protozero's own reader takes a length for one of 32 bits, and gives nothing of what is cut off.
void xla_message::take_bytes() {
  const protozero::data_view left = rest_.data();
  const char* const end = left.data() + left.size();
  const char* begin = left.data();
  const std::uint64_t size = protozero::decode_varint(&begin, end);
  const auto there = static_cast<std::size_t>(end - begin);
  if (size > there) (void)ends_early("field " + std::to_string(field()) + ", of " + std::to_string(size) + " bytes,");
  bytes_ = {begin, size > there ? there : static_cast<std::size_t>(size)};
  rest_ = protozero::pbf_reader{begin + bytes_.size(), there - bytes_.size()};
}

bool xla_message::ends_early(const std::string& what) {
  if (!may_be_cut_) fail(what + " extends past the end");
  is_cut_ = true;
  return false;
}

void xla_message::expect(protozero::pbf_wire_type type, const char* what) const {
  if (!value_.has_wire_type(type)) fail("field " + std::to_string(field()) + " is not " + what);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
