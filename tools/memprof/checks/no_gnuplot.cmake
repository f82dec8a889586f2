# Without gnuplot there is a line, no picture, and all tables.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(ENV{PATH} ${SCRATCH})
run(0 --logs ${CHECKS}/two_summaries.log --visualize-peak --json analysis.json)
expect("${output}" "Analysis complete")
expect_one_line("${errors}" "no picture: the program gnuplot was not found \\(package gnuplot-nox on Debian\\)")
if(EXISTS ${SCRATCH}/memory_peak_visualization.png OR NOT EXISTS ${SCRATCH}/analysis.json)
  message(FATAL_ERROR "a picture, or no JSON")
endif()

# One that fails is a failure.
file(WRITE ${SCRATCH}/gnuplot "#!/bin/sh\necho >&2\necho 'line 3: unknown terminal' >&2\nexit 1\n")
file(CHMOD ${SCRATCH}/gnuplot PERMISSIONS OWNER_READ OWNER_EXECUTE)
run(1 --logs ${CHECKS}/two_summaries.log --visualize-peak)
expect("${output}" "Analysis complete")
expect_one_line("${errors}" "no picture: gnuplot failed: line 3: unknown terminal")
