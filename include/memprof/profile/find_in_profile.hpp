#pragma once

#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/profile/profile.hpp>

#include <string>
#include <string_view>
#include <utility>

/// @file
/// The member functions of `profile` and `provenance`: compiled once where `MEMPROF_SEPARATE_COMPILATION` is 1.

namespace memprof::inline MEMPROF_ABI {

MEMPROF_SEPARABLE bool provenance::lacks(std::string_view field) const noexcept {
  for (const std::string& name : absent) {
    if (std::string_view{name} == field) return true;
  }
  return false;
}

MEMPROF_SEPARABLE const space_profile* profile::find_space(std::string_view name) const& noexcept {
  for (const space_profile& candidate : spaces) {
    if (std::string_view{candidate.name} == name) return &candidate;
  }
  return nullptr;
}

MEMPROF_SEPARABLE const space_profile& profile::space(std::string_view name) const& {
  if (const space_profile* const found = find_space(name)) return *found;
  std::string text = "the profile has no memory space '" + std::string{name} + "'; it has";
  if (spaces.empty()) text += " none: no allocation was recorded";
  for (const space_profile& present : spaces) text += (&present == spaces.data() ? " '" : ", '") + present.name + "'";
  detail::raise(text);
}

MEMPROF_SEPARABLE space_profile profile::space(std::string_view name) && {
  return std::move(const_cast<space_profile&>(std::as_const(*this).space(name)));
}

MEMPROF_SEPARABLE const operation_profile* profile::find_operation(std::string_view path) const& noexcept {
  for (const operation_profile& candidate : operations) {
    if (std::string_view{candidate.path} == path) return &candidate;
  }
  return nullptr;
}

}  // namespace memprof::inline MEMPROF_ABI
