#pragma once

namespace memprof_preload {

/// Begins to record, if the environment says so. Called once, after the library's own constructors and before all others.
void start(int count, char** words, char** environment) noexcept;

}  // namespace memprof_preload
