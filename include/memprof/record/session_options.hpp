#pragma once

#include <memprof/record/options.hpp>

#include <string>

namespace memprof::inline MEMPROF_ABI {

/// How a `session` records. The environment and a configuration file take precedence: docs/session.md.
struct session_options {
  std::string output_dir = ".";  ///< for the profile and the trace; created if missing
  double interval = 5;           ///< seconds between two periodic checkpoints
  bool enabled = false;          ///< if false, a session does nothing at all
  bool trace = false;            ///< also writes a trace file next to the profile, which survives whatever ends the process
  bool signals = true;           ///< writes the profile on SIGINT, SIGTERM, SIGHUP, SIGABRT, and an extra one on each SIGUSR1
  capture_options capture = {};  ///< for the session's capture; `trace` sets its `trace_file`
};

}  // namespace memprof::inline MEMPROF_ABI
