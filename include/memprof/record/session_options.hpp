#pragma once

#include <memprof/record/options.hpp>

#include <cstdint>
#include <string>

namespace memprof::inline MEMPROF_ABI {

/// What a session leaves: memprof's own profile, or what `memprof export --format session` writes, the JSON of pie's memory
/// profiler.
enum class session_format : std::uint8_t { profile, session };

/// How a `session` records. The environment and a configuration file take precedence: docs/session.md.
struct session_options {
  std::string output_dir = ".";  ///< for the profile and the trace; created if missing
  double interval = 5;           ///< seconds between two periodic checkpoints
  bool enabled = false;          ///< if false, a session does nothing at all
  bool trace = false;            ///< also writes a trace file next to the profile, which survives whatever ends the process
  bool signals = true;           ///< writes the profile on SIGINT, SIGTERM, SIGHUP, SIGABRT, and an extra one on each SIGUSR1
  /// `session` needs <memprof/toolkit/format/pie/session_file.hpp> in the program; until the file is there, a trace is beside it.
  session_format format = session_format::profile;
  capture_options capture = {};  ///< for the session's capture; `trace` sets its `trace_file`
};

}  // namespace memprof::inline MEMPROF_ABI
