#include <memprof/config.hpp>
#include <memprof/toolkit/format/tables/parquet.hpp>
#include <memprof/toolkit/format/tables/thrift.hpp>
#include <memprof/version.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

constexpr std::string_view parquet_mark = "PAR1";

// Numbers of parquet.thrift.
namespace parquet {
constexpr std::int32_t boolean = 0;
constexpr std::int32_t int64 = 2;
constexpr std::int32_t byte_array = 6;
constexpr std::int32_t plain = 0;
constexpr std::int32_t rle = 3;
constexpr std::int32_t rle_dictionary = 8;
constexpr std::int32_t required = 0;
constexpr std::int32_t utf8 = 0;
constexpr std::int32_t data_page = 0;
constexpr std::int32_t dictionary_page = 2;
constexpr std::int32_t uncompressed = 0;
}  // namespace parquet

template <class Integer>
void append_little_endian(std::string& to, Integer value) {
  for (std::size_t byte = 0; byte < sizeof value; ++byte) to += static_cast<char>(static_cast<std::uint64_t>(value) >> 8 * byte);
}

void append_plain(std::string& to, std::int64_t value) { append_little_endian(to, value); }
void append_plain(std::string& to, std::string_view value) {
  append_little_endian(to, static_cast<std::uint32_t>(value.size()));
  to += value;
}

/// Packs numbers below 2^`width`, the first in the lowest bits, and fills up to a multiple of eight of them.
std::string bit_packed(const std::vector<std::int64_t>& numbers, unsigned width) {
  std::string packed;
  std::uint64_t pending = 0;
  unsigned bits = 0;
  const std::size_t padded = (numbers.size() + 7) / 8 * 8;
  for (std::size_t index = 0; index < padded; ++index) {
    pending |= static_cast<std::uint64_t>(index < numbers.size() ? numbers[index] : 0) << bits;
    for (bits += width; bits >= 8; bits -= 8, pending >>= 8) packed += static_cast<char>(pending);
  }
  return packed;
}

/// Numbers of a dictionary of that size: their width in bits, and one bit-packed run.
std::string dictionary_numbers(const std::vector<std::int64_t>& numbers, std::size_t size) {
  const auto width = static_cast<unsigned>(std::max<std::size_t>(1, static_cast<std::size_t>(std::bit_width(size - 1))));
  std::string values(1, static_cast<char>(width));
  std::uint64_t header = (numbers.size() + 7) / 8 << 1 | 1;
  for (; header > 0x7f; header >>= 7) values += static_cast<char>(header | 0x80);
  values += static_cast<char>(header);
  return values + bit_packed(numbers, width);
}

std::int32_t physical_type(parquet_file::type of) {
  return of == parquet_file::type::text     ? parquet::byte_array
         : of == parquet_file::type::number ? parquet::int64
                                            : parquet::boolean;
}

}  // namespace

void parquet_file::add_column(std::string_view name, type of) {
  column& made = columns_.emplace_back();
  made.name = name;
  made.of = of;
}

void parquet_file::add(std::int64_t value) { columns_[next_++].numbers.push_back(value); }

void parquet_file::add(std::string_view utf8) {
  column& to = columns_[next_++];
  const auto [known, is_new] = to.number_of.try_emplace(std::string{utf8}, static_cast<std::int64_t>(to.texts.size()));
  if (is_new) {
    to.texts.emplace_back(known->first);
    text_bytes_ += utf8.size();
  }
  to.numbers.push_back(known->second);
}

void parquet_file::end_row() {
  constexpr std::size_t most_rows = 65'536;
  constexpr std::size_t most_text_bytes = 16 << 20;
  next_ = 0;
  if (++rows_ == most_rows || text_bytes_ > most_text_bytes) end_stretch();
}

void parquet_file::write(std::string_view bytes) {
  if (written_ == 0) {
    out_.write(parquet_begin);
    written_ = static_cast<std::int64_t>(parquet_begin.size());
  }
  out_.write(bytes);
  written_ += static_cast<std::int64_t>(bytes.size());
}

void parquet_file::write_page(std::string_view values, std::int64_t count, int encoding, bool is_dictionary) {
  const auto size = static_cast<std::int32_t>(values.size());
  thrift_struct described;
  described.number32(1, static_cast<std::int32_t>(count)).number32(2, encoding);
  if (!is_dictionary) described.number32(3, parquet::rle).number32(4, parquet::rle);  // of levels, which there are none
  thrift_struct header;
  header.number32(1, is_dictionary ? parquet::dictionary_page : parquet::data_page).number32(2, size).number32(3, size);
  header.child(is_dictionary ? 7 : 5, described);
  write(header.ended());
  write(values);
}

parquet_file::chunk parquet_file::write_chunk(const column& of) {
  constexpr std::size_t most_numbers = 4096;
  const std::int64_t begin = std::max(written_, static_cast<std::int64_t>(parquet_begin.size()));
  chunk made;
  made.rows = static_cast<std::int64_t>(of.numbers.size());
  std::string values;
  std::vector<std::int64_t> numbers;
  std::size_t size = of.texts.size();
  for (const std::string_view text : of.texts) append_plain(values, text);
  if (of.of == type::number) {
    std::unordered_map<std::int64_t, std::int64_t> number_of;
    for (const std::int64_t value : of.numbers) {
      const auto [known, is_new] = number_of.try_emplace(value, static_cast<std::int64_t>(number_of.size()));
      if (is_new) append_plain(values, value);
      numbers.push_back(known->second);
      if (number_of.size() > most_numbers) break;
    }
    size = number_of.size() > most_numbers ? 0 : number_of.size();
  }
  if (size != 0) {
    made.dictionary_offset = begin;
    write_page(values, static_cast<std::int64_t>(size), parquet::plain, true);
    made.data_offset = written_;
    write_page(dictionary_numbers(of.of == type::text ? of.numbers : numbers, size), made.rows, parquet::rle_dictionary, false);
  } else {
    values.clear();
    for (const std::int64_t value : of.numbers) {
      if (of.of == type::number) append_plain(values, value);
    }
    made.data_offset = begin;
    write_page(of.of == type::boolean ? bit_packed(of.numbers, 1) : values, made.rows, parquet::plain, false);
  }
  made.bytes = written_ - begin;
  return made;
}

void parquet_file::end_stretch() {
  if (rows_ == 0) return;
  thrift_struct group;
  group.list_of_structs(1, columns_.size());
  std::int64_t bytes = 0;
  for (column& each : columns_) {
    const chunk made = write_chunk(each);
    bytes += made.bytes;
    thrift_struct described;
    described.number32(1, physical_type(each.of));
    described.list_of_numbers(2, 2).append_number(parquet::plain);
    described.append_number(made.dictionary_offset < 0 ? parquet::rle : parquet::rle_dictionary);
    described.list_of_texts(3, 1).append_text(each.name);
    described.number32(4, parquet::uncompressed).number64(5, made.rows).number64(6, made.bytes).number64(7, made.bytes);
    described.number64(9, made.data_offset);
    if (made.dictionary_offset >= 0) described.number64(11, made.dictionary_offset);
    thrift_struct chunk_of_column;
    chunk_of_column.number64(2, made.dictionary_offset < 0 ? made.data_offset : made.dictionary_offset).child(3, described);
    group.append_bytes_of(chunk_of_column.ended());
    each.numbers.clear();
    each.texts.clear();
    each.number_of.clear();
  }
  group.number64(2, bytes).number64(3, static_cast<std::int64_t>(rows_));
  row_groups_.push_back(group.ended());
  all_rows_ += static_cast<std::int64_t>(rows_);
  rows_ = 0;
  text_bytes_ = 0;
}

std::string parquet_file::schema_element(const column& of) const {
  thrift_struct element;
  element.number32(1, physical_type(of.of)).number32(3, parquet::required).text(4, of.name);
  if (of.of == type::text) element.number32(6, parquet::utf8).child(10, thrift_struct{}.child(1, {}));
  return element.ended();
}

void parquet_file::finish() {
  end_stretch();
  thrift_struct root;
  root.text(4, "schema").number32(5, static_cast<std::int32_t>(columns_.size()));
  thrift_struct file;
  file.number32(1, 1).list_of_structs(2, columns_.size() + 1).append_bytes_of(root.ended());
  for (const column& each : columns_) file.append_bytes_of(schema_element(each));
  file.number64(3, all_rows_).list_of_structs(4, row_groups_.size());
  for (const std::string& group : row_groups_) file.append_bytes_of(group);
  file.text(6, "memprof version " + std::string{version_string});
  const std::string described = file.ended();
  write(described);
  std::string size;
  append_little_endian(size, static_cast<std::uint32_t>(described.size()));
  write(size);
  write(parquet_mark);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
