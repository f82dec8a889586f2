# A real log that lacks its totals is read as far as it goes.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
if(NOT EXISTS ${LOG})
  message("skipped: there is no ${LOG}")
  return()
endif()
run(0 --logs ${LOG})
expect("${output}" "  Peak DRAM:            14,453.88 MB\n" "  Peak Segment:         BACKWARD_PASS_micro_0 (5 of 5)\n"
  "  Activations:          7,641.99 MB\n" "  Actual (from logs):   2,104.92 MB\n" # 8416.72 - 6311.80
  "the final totals are missing: overall peak and final usage are computed from the segments.\n")
