#pragma once

#include "core.hpp"
#include "traces.hpp"

#include <nanobind/nanobind.h>

#include <memprof/profile/profile.hpp>
#include <memprof/toolkit/format/stacks/stack_table.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace memprof_python {

/// A profile or a trace that a caller passes, who keeps it alive.
struct recording {
  const memprof::profile* profile = nullptr;  ///< null: it is a trace
  const recorded_trace* trace = nullptr;
};

/// The trace that a session profile of pie's memory profiler amounts to. Throws `memprof::error` if the file is none.
[[nodiscard]] std::shared_ptr<recorded_trace> read_session(std::FILE* file, const std::filesystem::path& path);

/// Profiles and traces.
using recording_list = nb::typed<nb::sequence, nb::object>;

/// Raises TypeError for any other object.
[[nodiscard]] recording recording_of(nb::handle object);
[[nodiscard]] std::vector<recording> recordings_of(const recording_list& objects);

[[nodiscard]] memprof::profile profile_of(const recording& of, std::uint32_t full_segments = 0);

/// A recording, and who allocated what in it.
struct read_stacks {
  memprof::profile profile;
  memprof::stack_table stacks;  ///< of a trace: with categories, sizes and callers
};

/// Throws `memprof::error` if it recorded no memory.
[[nodiscard]] read_stacks stacks_of(const recording& of, std::uint32_t full_segments = 0);

/// Throws `memprof::error` if the profile has no memory space.
void require_something(const memprof::profile& of);

/// The space with that name; of an empty one, the one with the greatest peak.
[[nodiscard]] const memprof::space_profile& chosen_space(const memprof::profile& of, const std::string& name);

/// "'run.json'", or what it is called in a sentence otherwise.
[[nodiscard]] std::string recording_name(const memprof::profile& of, const char* otherwise);

}  // namespace memprof_python
