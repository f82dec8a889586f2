# Without gnuplot there is a line, no picture, and everything else.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(ENV{PATH} ${SCRATCH})
run(0 --plot-dir plots --json-out summary.json)
expect("${output}" "Skipping PNG plots: gnuplot is not installed. Install with `apt-get install gnuplot-nox`.\nSaved JSON summary to: summary.json\n")
if(NOT EXISTS ${SCRATCH}/summary.json OR output MATCHES "Saved plots")
  message(FATAL_ERROR "${output}")
endif()
