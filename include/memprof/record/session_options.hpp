#pragma once

#include <memprof/record/options.hpp>

#include <string>

namespace memprof::inline MEMPROF_ABI {

/// How a `session` records. What the environment and a configuration file say goes before what is written here: docs/session.md.
struct session_options {
  std::string output_dir = ".";  ///< where the profile and the trace go; made if it is not there
  double interval = 5;           ///< seconds between two periodic checkpoints
  bool enabled = false;          ///< without it a session does nothing at all
  bool trace = false;            ///< also writes a trace file beside the profile: it remains whatever ends the process
  bool signals = true;           ///< leaves the profile at SIGINT, SIGTERM, SIGHUP, SIGABRT, and one more at each SIGUSR1
  capture_options capture = {};  ///< of the capture that the session begins; `trace` sets its `trace_file`
};

}  // namespace memprof::inline MEMPROF_ABI
