#pragma once

#include <c10/util/Exception.h>

#include <string>

/// The text of the `c10::Error` that `run` throws; empty if it throws none.
template <class Run>
[[nodiscard]] std::string fault_of(Run run) {
  try {
    run();
  } catch (const c10::Error& thrown) {
    return thrown.what_without_backtrace();
  }
  return "";
}
