#include <memprof/config.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_fields.hpp>
#include <memprof/toolkit/format/pytorch/snapshot_records.hpp>
#include <memprof/trace/category.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

constexpr torch_expectation torch_whole_number = "must be a whole number from -2^63 to 2^63 - 1";
constexpr torch_expectation torch_natural_number = "must be a whole number from 0 to 2^63 - 1";
constexpr torch_expectation torch_bytes = "must be a number of bytes, a whole number from 0 to 2^47";
constexpr torch_expectation torch_text = "must be a string";

torch_expectation read_to(std::int64_t& out, const torch_field& field) noexcept {
  out = field.integer.value_or(0);
  return field.integer ? nullptr : torch_whole_number;
}

torch_expectation read_to(std::uint64_t& out, const torch_field& field) noexcept {
  out = static_cast<std::uint64_t>(field.integer.value_or(0));
  return field.integer.value_or(-1) >= 0 ? nullptr : torch_natural_number;
}

template <class Integer>
torch_expectation read_limited_to(Integer& out, const torch_field& field) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 47;
  out = static_cast<Integer>(field.integer.value_or(0));
  return field.integer.value_or(-1) >= 0 && *field.integer <= most ? nullptr : torch_bytes;
}

torch_action action_of(std::string_view name) noexcept {
  for (std::size_t index = 0; index < torch_action_names.size(); ++index) {
    if (name == torch_action_names[index]) return static_cast<torch_action>(index);
  }
  if (name == "free") return torch_action::free_completed;
  if (name == "segment_map") return torch_action::segment_alloc;
  if (name == "segment_unmap") return torch_action::segment_free;
  return name == "snapshot" || name == "annotate" ? torch_action::nothing : torch_action::other;
}

}  // namespace

torch_expectation read_bytes_to(std::uint64_t& out, const torch_field& field) noexcept { return read_limited_to(out, field); }

torch_expectation read_time_to(std::int64_t& out, const torch_field& field) noexcept {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 1000 - 1;
  out = field.integer.value_or(0);
  return field.integer.value_or(-1) >= 0 && out <= most ? nullptr : "must be a time in microseconds, a whole number below 9.2e15";
}

bool note_key(std::uint32_t& seen, std::span<const std::string_view> keys, std::string_view key) noexcept {
  for (std::size_t index = 0; index < keys.size(); ++index) {
    if (keys[index] != key) continue;
    const std::uint32_t bit = std::uint32_t{1} << index;
    const bool is_new = (seen & bit) == 0;
    seen |= bit;
    return is_new;
  }
  return true;
}

bool torch_may_be_null(std::string_view key) noexcept {
  return key == "frames" || key == "category" || key == "pool_id" || key == "device_free";
}

torch_expectation set(torch_event& event, const torch_field& field, torch_stacks& names) {
  if (field.key == "addr") return read_to(event.address, field);
  if (field.key == "size") return read_limited_to(event.bytes, field);
  if (field.key == "stream") return read_to(event.stream, field);
  if (field.key == "time_us") return read_time_to(event.time_us, field);
  if (field.key == "device_free") return read_limited_to(event.device_free.emplace(), field);
  if (field.key == "action") {
    if (!field.text) return torch_text;
    event.action = action_of(*field.text);
    if (event.action == torch_action::other) event.unknown_action = names.name_of(*field.text);
  }
  if (field.key == "category") {
    if (!field.text) return torch_text;
    event.category = category_from_string(*field.text);
  }
  if (field.key == "user_metadata" && field.text && !field.text->empty()) event.metadata = names.name_of(*field.text);
  return nullptr;
}

torch_expectation lack_of(const torch_event& event) noexcept {
  using type = torch_action;
  if (event.action == type::absent) return "expected 'action'";
  if (event.action == type::other || event.action == type::nothing) return nullptr;
  if (!event.has_size()) return "expected 'size'";
  return event.action == type::oom || event.has_address() ? nullptr : "expected 'addr'";
}

torch_expectation set(torch_segment& segment, const torch_field& field) {
  if (field.key == "device") return read_to(segment.device, field);
  if (field.key == "address") return read_to(segment.address, field);
  if (field.key == "total_size") return read_limited_to(segment.total_size, field);
  if (field.key == "allocated_size") return read_limited_to(segment.allocated_size, field);
  if (field.key == "active_size") return read_limited_to(segment.active_size, field);
  if (field.key == "requested_size") return read_limited_to(segment.requested_size, field);
  if (field.key == "stream") return read_to(segment.stream, field);
  if (field.key == "segment_type") {
    if (!field.text) return torch_text;
    segment.type = *field.text;
  }
  if (field.key == "is_expandable") {
    if (!field.truth) return "must be true or false";
    segment.is_expandable = *field.truth;
  }
  return nullptr;
}

torch_expectation torch_block_fields::set(const torch_field& field) {
  if (field.key == "address") return has_address = true, read_to(block.address, field);
  if (field.key == "size") return read_limited_to(block.size, field);
  if (field.key == "requested_size") return has_requested_size = true, read_limited_to(block.bytes, field);
  if (field.key == "state") {
    // The third is what PyTorch's documentation calls the second.
    constexpr std::array<std::string_view, 4> states{"active_allocated", "active_pending_free", "active_awaiting_free",
                                                     "inactive"};
    const auto* const state = std::find(states.begin(), states.end(), field.text.value_or(std::string_view{}));
    if (state == states.end()) return "must be 'active_allocated', 'active_pending_free' or 'inactive'";
    is_active = *state != "inactive";
    block.is_awaited = is_active && *state != "active_allocated";
  }
  return nullptr;
}

torch_expectation torch_block_fields::lack() const noexcept {
  return (seen & 1U) == 0 ? "expected 'size'" : (seen & 2U) == 0 ? "expected 'state'" : nullptr;
}

void torch_block_fields::add_to(torch_segment& segment, std::uint64_t& next) {
  if (!has_address) block.address = next;
  next = block.address + block.size;
  if (!has_requested_size) block.bytes = block.size;
  if (is_active) segment.blocks.push_back(block);
}

}  // namespace memprof::inline MEMPROF_ABI::detail
