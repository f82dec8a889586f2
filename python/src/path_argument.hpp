#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>

#include <cstdint>
#include <filesystem>
#include <utility>

namespace memprof_python {

/// A path that a caller passes. nanobind's own type for them is incomplete in a strict type checker's eyes.
struct path_argument {
  std::filesystem::path path;

  operator const std::filesystem::path&() const noexcept { return path; }  // implicit, as it stands for one
};

}  // namespace memprof_python

template <>
struct nanobind::detail::type_caster<memprof_python::path_argument> {
  NB_TYPE_CASTER(memprof_python::path_argument, const_name("str | os.PathLike[str]"))

  bool from_python(handle source, std::uint8_t flags, cleanup_list* cleanup) noexcept {
    make_caster<std::filesystem::path> plain;
    if (!plain.from_python(source, flags, cleanup)) return false;
    value.path = std::move(plain.value);
    return true;
  }
};
