#include <memprof/config.hpp>
#include <memprof/toolkit/format/xla/hlo_shape.hpp>
#include <memprof/toolkit/format/xla/message.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace memprof::inline MEMPROF_ABI {

hlo_element_type element_type(std::uint64_t number) noexcept {
  constexpr hlo_element_type types[] = {{"invalid", 0},    {"pred", 1}, {"s8", 1},       {"s16", 2},           {"s32", 4},
                                        {"s64", 8},        {"u8", 1},   {"u16", 2},      {"u32", 4},           {"u64", 8},
                                        {"f16", 2},        {"f32", 4},  {"f64", 8},      {"tuple", 0},         {"opaque", 0},
                                        {"c64", 8},        {"bf16", 2}, {"token", 0},    {"c128", 16},         {"f8e5m2", 1},
                                        {"f8e4m3fn", 1},   {"s4", 1},   {"u4", 1},       {"f8e4m3b11fnuz", 1}, {"f8e5m2fnuz", 1},
                                        {"f8e4m3fnuz", 1}, {"s2", 1},   {"u2", 1},       {"f8e4m3", 1},        {"f8e3m4", 1},
                                        {"s1", 1},         {"u1", 1},   {"f4e2m1fn", 1}, {"f8e8m0fnu", 1},     {"buffer", 0}};
  return number < sizeof types / sizeof types[0] ? types[number] : hlo_element_type{"unknown", 0};
}

namespace detail {

namespace {

constexpr std::uint64_t tuple_type = 13;

constexpr std::uint64_t opaque_type = 14;

/// No program nests shapes deeper; deeper ones mean a hostile file.
constexpr int max_nested_shapes = 64;

}  // namespace

void append_numbers(std::string& to, const std::vector<std::int64_t>& numbers) {
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    if (index != 0) to += ',';
    to += std::to_string(numbers[index]);
  }
}

namespace {

[[nodiscard]] std::string shape_text(const protobuf_file& file, std::string_view encoded, int depth);

/// Appends the numbers of a field that may come in several parts.
void append(std::vector<std::int64_t>& to, const xla_message& in) {
  for (const std::int64_t number : in.integers()) to.push_back(number);
}

/// The part of a `LayoutProto` after the order of dimensions, as XLA prints it.
class layout_text {
 public:
  layout_text(const protobuf_file& file, std::string_view encoded, int depth) {
    xla_message in{file, encoded, "LayoutProto"};
    while (in.next()) {
      switch (in.field()) {
        case 1: append(order_, in); break;
        case 6: read_tile(in.message("TileProto")); break;
        case 7: bits_ = in.integer(); break;
        case 8: space_ = in.integer(); break;
        case 9: append(levels_, in); break;
        case 10: physical_ = "P(" + shape_text(file, in.text(), depth + 1) + ')'; break;
        case 11: index_type_ = in.unsigned_integer(); break;
        case 12: pointer_type_ = in.unsigned_integer(); break;
        case 15: prefix_bytes_ = in.integer(); break;
        case 16: tail_ = in.integer(); break;
        case 17: read_split(in.message("SplitConfigProto")); break;
        default: break;
      }
    }
  }

  [[nodiscard]] std::string text() const {
    std::string rest;
    if (!levels_.empty()) {
      rest += "D(";
      for (std::size_t index = 0; index < levels_.size(); ++index) {
        if (index != 0) rest += ',';
        rest += level_name(levels_[index]);
      }
      rest += ')';
    }
    if (!tiles_.empty()) rest += 'T' + tiles_;
    if (tail_ > 1) rest += "L(" + std::to_string(tail_) + ')';
    if (index_type_ != 0) rest.append("#(").append(element_type(index_type_).name) += ')';
    if (pointer_type_ != 0) rest.append("*(").append(element_type(pointer_type_).name) += ')';
    if (bits_ != 0) rest += "E(" + std::to_string(bits_) + ')';
    if (space_ != 0) rest += "S(" + std::to_string(space_) + ')';
    if (!splits_.empty()) rest += "SC" + splits_;
    rest += physical_;
    if (prefix_bytes_ > 0) rest += "M(" + std::to_string(prefix_bytes_) + ')';
    std::string made{'{'};
    append_numbers(made, order_);
    if (!rest.empty()) made += ':' + rest;
    return made + '}';
  }

 private:
  [[nodiscard]] static char level_name(std::int64_t level) noexcept {
    constexpr std::string_view names = "DCSH";  // dense, compressed, singleton, loose compressed
    return level >= 0 && level < 4 ? names[static_cast<std::size_t>(level)] : '?';
  }
  void read_tile(xla_message in) {
    std::vector<std::int64_t> sizes;
    while (in.next()) {
      if (in.field() == 1) append(sizes, in);
    }
    tiles_ += '(';
    for (std::size_t index = 0; index < sizes.size(); ++index) {
      if (index != 0) tiles_ += ',';
      // Combined with the next dimension.
      tiles_ += sizes[index] == std::numeric_limits<std::int64_t>::min() ? "*" : std::to_string(sizes[index]);
    }
    tiles_ += ')';
  }
  void read_split(xla_message in) {
    std::int64_t dimension = 0;
    std::vector<std::int64_t> indices;
    while (in.next()) {
      if (in.field() == 1) dimension = in.integer();
      if (in.field() == 2) append(indices, in);
    }
    splits_ += '(' + std::to_string(dimension) + ':';
    append_numbers(splits_, indices);
    splits_ += ')';
  }

  std::vector<std::int64_t> order_;
  std::vector<std::int64_t> levels_;
  std::string tiles_;
  std::string splits_;
  std::string physical_;
  std::int64_t bits_ = 0;
  std::int64_t space_ = 0;
  std::int64_t tail_ = 0;
  std::int64_t prefix_bytes_ = 0;
  std::uint64_t index_type_ = 0;
  std::uint64_t pointer_type_ = 0;
};

}  // namespace

}  // namespace detail

hlo_shape read_hlo_shape(const detail::protobuf_file& file, std::string_view encoded) {
  hlo_shape made;
  detail::xla_message in{file, encoded, "ShapeProto"};
  while (in.next()) {
    switch (in.field()) {
      case 2: made.type = in.unsigned_integer(); break;
      case 3: detail::append(made.dimensions, in); break;
      case 4: made.parts.push_back(in.text()); break;
      case 5:
        made.layout = in.text();
        made.has_layout = true;
        break;
      case 6:
        for (const std::int64_t is_dynamic : in.integers()) made.is_dynamic.push_back(is_dynamic != 0);
        break;
      default: break;
    }
  }
  return made;
}

std::int64_t unpadded_bytes(const hlo_shape& shape) noexcept {
  constexpr std::int64_t pointer_bytes = 8;
  if (shape.type == detail::tuple_type) return pointer_bytes * static_cast<std::int64_t>(shape.parts.size());
  if (shape.type == detail::opaque_type) return pointer_bytes;
  std::int64_t bytes = element_type(shape.type).bytes;
  for (const std::int64_t size : shape.dimensions) {
    if (size <= 0) return 0;
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::numeric_limits<std::int64_t>::max();
  }
  return bytes;
}

std::string hlo_shape_text(const detail::protobuf_file& file, std::string_view encoded) {
  return detail::shape_text(file, encoded, 0);
}

namespace detail {

namespace {

std::string shape_text(const protobuf_file& file, std::string_view encoded, int depth) {
  if (depth > max_nested_shapes) file.raise_at(encoded.data(), "ShapeProto", "shapes are nested too deeply");
  const hlo_shape shape = read_hlo_shape(file, encoded);
  if (shape.type == tuple_type) {
    std::string made{'('};
    for (std::size_t index = 0; index < shape.parts.size(); ++index) {
      if (index != 0) made += ", ";
      if (index != 0 && index % 5 == 0) made += "/*index=" + std::to_string(index) + "*/";
      made += shape_text(file, shape.parts[index], depth + 1);
    }
    return made + ')';
  }
  std::string made{element_type(shape.type).name};
  made += '[';
  for (std::size_t index = 0; index < shape.dimensions.size(); ++index) {
    if (index != 0) made += ',';
    if (index < shape.is_dynamic.size() && shape.is_dynamic[index]) made += "<=";
    made += std::to_string(shape.dimensions[index]);
  }
  made += ']';
  if (!shape.has_layout) return made;
  const std::string layout = layout_text{file, shape.layout, depth}.text();
  return shape.dimensions.empty() && layout == "{}" ? made : made + layout;
}

}  // namespace

}  // namespace detail

}  // namespace memprof::inline MEMPROF_ABI
