#include "operator_call.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace operator_calls {
namespace {

constexpr std::pair<std::string_view, c10::ScalarType> dtype_names[] = {
    {"f32", c10::kFloat},
    {"f64", c10::kDouble},
    {"f16", c10::kHalf},
    {"bf16", c10::kBFloat16},
    {"c32", c10::kComplexHalf},
    {"c64", c10::kComplexFloat},
    {"c128", c10::kComplexDouble},
    {"i64", c10::kLong},
    {"i32", c10::kInt},
    {"i16", c10::kShort},
    {"i8", c10::kChar},
    {"u8", c10::kByte},
    {"b8", c10::kBool},
};

[[noreturn]] void fail(std::string_view what, std::string_view text) {
  throw std::runtime_error{std::string{what} + ": " + std::string{text}};
}

c10::ScalarType dtype_of(std::string_view name) {
  for (const auto& [text, dtype] : dtype_names) {
    if (text == name) return dtype;
  }
  fail("no type of numbers", name);
}

std::int64_t integer_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc{} || end != text.data() + text.size()) fail("no integer", text);
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::vector<std::int64_t> integers_of(std::string_view text) {
  std::vector<std::int64_t> values;
  for (const std::string_view part : split(text, ',')) values.push_back(integer_of(part));
  return values;
}

std::vector<std::int64_t> contiguous_strides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t index = sizes.size(); index-- > 1;) {
    strides[index - 1] = strides[index] * std::max<std::int64_t>(sizes[index], 1);
  }
  return strides;
}

/// Takes off what stands up to one of the `ends`.
std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::size_t end = std::min(text.find_first_of(ends), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(end);
  return taken;
}

std::optional<tensor_spec> tensor_of(std::string_view text) {
  const std::size_t bracket = text.find('[');
  if (bracket == std::string_view::npos || text.front() == '"') return std::nullopt;
  tensor_spec spec;
  spec.dtype = dtype_of(text.substr(0, bracket));
  text.remove_prefix(bracket + 1);
  spec.sizes = integers_of(take_until(text, "]"));
  spec.strides = contiguous_strides(spec.sizes);
  text.remove_prefix(1);
  while (!text.empty()) {
    const char kind = text.front();
    text.remove_prefix(1);
    const std::string_view part = take_until(text, kind == '{' ? "}" : "+{%");
    if (kind == '/') {
      spec.strides = integers_of(part);
      spec.is_contiguous = false;
    } else if (kind == '+') {
      spec.offset = integer_of(part);
    } else if (kind == '{') {
      for (const std::string_view value : split(part, ',')) spec.values.emplace_back(value);
      text.remove_prefix(1);
    } else if (kind == '%') {
      const auto bounds = split(part, ':');
      spec.bounds = std::pair{integer_of(bounds.at(0)), integer_of(bounds.at(1))};
    } else {
      fail("no tensor", text);
    }
  }
  return spec;
}

c10::Scalar scalar_of(const std::string& text) {
  if (text == "T") return true;
  if (text == "F") return false;
  if (text.front() == 'c') {
    const std::size_t comma = text.find(',');
    return c10::complex<double>{std::stod(text.substr(1, comma - 1)), std::stod(text.substr(comma + 1))};
  }
  if (text.find_first_of(".einf") == std::string::npos) return integer_of(text);
  return std::stod(text);
}

c10::IValue named_value(std::string_view name) {
  if (name == "cpu") return c10::Device{c10::kCPU};
  if (name == "strided") return c10::kStrided;
  if (name == "contiguous") return c10::MemoryFormat::Contiguous;
  if (name == "preserve") return c10::MemoryFormat::Preserve;
  if (name == "channels_last") return c10::MemoryFormat::ChannelsLast;
  if (name == "channels_last_3d") return c10::MemoryFormat::ChannelsLast3d;
  return dtype_of(name);
}

tensor_spec laid_out(tensor_spec spec, layout wanted) {
  const std::size_t rank = spec.sizes.size();
  if (!spec.is_contiguous || rank == 0) return spec;
  const tensor_spec before = spec;
  switch (wanted) {
    case layout::as_written: return before;
    case layout::transposed: {
      if (rank < 2) return before;
      std::vector<std::int64_t> swapped = spec.sizes;
      std::swap(swapped[rank - 1], swapped[rank - 2]);
      spec.strides = contiguous_strides(swapped);
      std::swap(spec.strides[rank - 1], spec.strides[rank - 2]);
      break;
    }
    case layout::sliced: {
      std::vector<std::int64_t> wider = spec.sizes;
      wider[rank - 1] += 3;
      spec.strides = contiguous_strides(wider);
      spec.offset = 1;
      break;
    }
    case layout::expanded: spec.strides.assign(rank, 0); break;
    case layout::channels_last:
      if (rank == 4) {
        spec.strides = c10::get_channels_last_strides_2d(spec.sizes);
      } else if (rank == 5) {
        spec.strides = c10::get_channels_last_strides_3d(spec.sizes);
      } else {
        return before;
      }
      break;
  }
  spec.is_contiguous = false;
  return spec;
}

bool is_number(c10::ScalarType dtype) { return c10::isFloatingType(dtype) || c10::isComplexType(dtype); }

}  // namespace

const char* name_of(layout one) {
  constexpr std::array names{"as written", "transposed", "sliced", "expanded", "channels last"};
  return names[static_cast<std::size_t>(one)];
}

const char* name_of(laid_out_tensors ones) {
  constexpr std::array names{"all", "the first", "all but the first"};
  return names[static_cast<std::size_t>(ones)];
}

std::int64_t tensor_spec::storage_elements() const {
  std::int64_t last = offset;
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    if (sizes[index] == 0) return 0;
    last += (sizes[index] - 1) * strides[index];
  }
  return last + 1;
}

operator_call::operator_call(std::string_view line)
    : text_(line), called_([&] {
        const std::string_view name = line.substr(0, line.find(' '));
        const std::size_t dot = std::min(name.find('.'), name.size());
        return c10::Dispatcher::singleton().findSchemaOrThrow(std::string{name.substr(0, dot)}.c_str(),
                                                              std::string{name.substr(std::min(dot + 1, name.size()))}.c_str());
      }()) {
  std::vector<std::string_view> words = split(line, ' ');
  std::reverse(words.begin(), words.end());
  words.pop_back();
  for (const c10::Argument& one : called_.schema().arguments()) {
    arguments_.push_back(parse_argument(words));
    arguments_.back().is_written = one.alias_info() != nullptr && one.alias_info()->isWrite();
  }
  if (!words.empty()) fail("more words than arguments", line);
}

operator_call::argument operator_call::parse_argument(std::vector<std::string_view>& words) const {
  if (words.empty()) fail("fewer words than arguments", text_);
  argument result;
  result.text = std::string{words.back()};
  words.pop_back();
  if (result.text == "(") {
    result.is_list = true;
    while (!words.empty() && words.back() != ")") result.elements.push_back(parse_argument(words));
    if (words.empty()) fail("no end of a list", text_);
    words.pop_back();
  } else {
    result.tensor = tensor_of(result.text);
  }
  return result;
}

c10::IValue operator_call::value_of(const argument& one, const c10::Type& type, torch::jit::Stack& so_far,
                                    const std::function<at::Tensor(const tensor_spec&)>& make) const {
  using c10::TypeKind;
  if (one.text == "-") return {};
  if (type.kind() == TypeKind::OptionalType)
    return value_of(one, *type.castRaw<c10::OptionalType>()->getElementType(), so_far, make);
  if (one.is_list) {
    const c10::TypePtr element = type.castRaw<c10::ListType>()->getElementType();
    std::vector<c10::IValue> values;
    for (const argument& each : one.elements) values.push_back(value_of(each, *element, so_far, make));
    c10::List<c10::IValue> generic{element};
    switch (element->kind()) {
      case TypeKind::TensorType: {
        std::vector<at::Tensor> list;
        for (const c10::IValue& value : values) list.push_back(value.toTensor());
        return list;
      }
      case TypeKind::IntType:
      case TypeKind::SymIntType: {
        std::vector<std::int64_t> list;
        for (const c10::IValue& value : values) list.push_back(value.toInt());
        return list;
      }
      case TypeKind::FloatType: {
        std::vector<double> list;
        for (const c10::IValue& value : values) list.push_back(value.toDouble());
        return list;
      }
      case TypeKind::BoolType: {
        c10::List<bool> list;
        for (const c10::IValue& value : values) list.push_back(value.toBool());
        return list;
      }
      default:
        for (c10::IValue& value : values) generic.push_back(std::move(value));
        return generic;
    }
  }
  if (one.tensor.has_value()) return make(*one.tensor);
  if (one.text.front() == '=') return so_far.at(static_cast<std::size_t>(std::stoi(one.text.substr(1))));
  if (one.text.front() == '"') return one.text.substr(1);
  if (one.text.front() == ':') return named_value(std::string_view{one.text}.substr(1));
  const c10::Scalar number = scalar_of(one.text);
  switch (type.kind()) {
    case TypeKind::FloatType: return number.toDouble();
    case TypeKind::ListType: {  // one number for all, as in int[2]
      const c10::TypePtr element = type.castRaw<c10::ListType>()->getElementType();
      if (element->kind() == TypeKind::FloatType) return std::vector<double>{number.toDouble()};
      return std::vector<std::int64_t>{number.toLong()};
    }
    case TypeKind::BoolType: return number.toBool();
    case TypeKind::IntType:
    case TypeKind::SymIntType: return number.toLong();
    default: return number;
  }
}

torch::jit::Stack operator_call::arguments(const std::function<at::Tensor(const tensor_spec&)>& make) const {
  torch::jit::Stack stack;
  const auto& schema = called_.schema().arguments();
  for (std::size_t index = 0; index < arguments_.size(); ++index) {
    stack.push_back(value_of(arguments_[index], *schema[index].real_type(), stack, make));
  }
  return stack;
}

std::optional<operator_call> operator_call::with(layout wanted, laid_out_tensors ones) const {
  operator_call result = *this;
  bool is_changed = false;
  std::size_t tensors = 0;
  const std::function<void(argument&, bool)> change = [&](argument& one, bool is_written) {
    for (argument& element : one.elements) change(element, is_written);
    if (!one.tensor.has_value()) return;
    const bool is_first = tensors++ == 0;
    if (ones != laid_out_tensors::all && is_first != (ones == laid_out_tensors::first)) return;
    tensor_spec spec = *one.tensor;
    if (!is_written && spec.values.empty() && !spec.bounds.has_value()) spec = laid_out(spec, wanted);
    is_changed |= spec.strides != one.tensor->strides;
    one.tensor = spec;
  };
  for (argument& one : result.arguments_) change(one, one.is_written);
  if (!is_changed || (ones != laid_out_tensors::all && tensors < 2)) return std::nullopt;
  result.text_ += std::string{" ("} + name_of(ones) + " " + name_of(wanted) + ")";
  return result;
}

void fill(at::Tensor& real, const tensor_spec& spec, filling kind) {
  at::NoGradGuard no_graph;
  if (real.numel() == 0) return;
  if (!spec.values.empty()) {
    std::vector<std::int64_t> values;
    for (const std::string& value : spec.values) {
      values.push_back(value == "T" ? 1 : value == "F" ? 0 : integer_of(value));
    }
    real.copy_(at::tensor(values, at::kLong).view(spec.sizes));
    return;
  }
  const std::int64_t elements = real.numel();
  if (is_number(spec.dtype)) {
    if (kind == filling::ones) {
      real.fill_(1);
    } else if (kind == filling::identity && real.dim() >= 2 && real.size(-1) == real.size(-2)) {
      real.copy_(at::eye(real.size(-1), real.options()).mul(2).add(0.01).expand(spec.sizes));
    } else {
      real.copy_(at::arange(elements, at::kDouble).mul(0.61803398875).frac().mul(0.98).add(0.01).view(spec.sizes));
    }
    return;
  }
  const std::int64_t least = spec.bounds.has_value() ? spec.bounds->first : 0;
  const std::int64_t most = spec.bounds.has_value() ? spec.bounds->second : 1;
  real.copy_(at::arange(elements, at::kLong).mul(7919).remainder(most - least + 1).add(least).view(spec.sizes));
}

at::Tensor make_real(const tensor_spec& spec, filling kind) {
  const auto options = at::TensorOptions{}.dtype(spec.dtype);
  at::Tensor storage = at::zeros({spec.storage_elements()}, options);
  at::Tensor result = storage.as_strided(spec.sizes, spec.strides, spec.offset);
  if (result.numel() != 0) {
    bool is_expanded = false;
    for (std::size_t index = 0; index < spec.sizes.size(); ++index)
      is_expanded |= spec.strides[index] == 0 && spec.sizes[index] > 1;
    at::Tensor target = is_expanded ? storage : result;
    tensor_spec whole = spec;
    if (is_expanded) {
      whole.sizes = storage.sizes().vec();
      if (!spec.values.empty()) {  // broadcast values are equal
        whole.values.assign(static_cast<std::size_t>(storage.numel()), spec.values.front());
      }
    }
    fill(target, whole, kind);
  }
  return result;
}

}  // namespace operator_calls
