# --json writes the tables' numbers; a file that cannot be written costs only itself.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(0 ${CHECKS}/two_summaries.log --device-memory 12GiB --json analysis.json)
file(READ ${SCRATCH}/analysis.json document)
foreach(expectation "memprof-analysis;format" "2;version" "969369600;summaries;1;parameters" "BACKWARD_PASS;summaries;1;segments;3;segment"
    "3;summaries;0;peak_segment" "12884901888;summaries;0;device_memory")
  list(POP_FRONT expectation wanted)
  string(JSON value GET "${document}" ${expectation})
  if(NOT value STREQUAL wanted)
    message(FATAL_ERROR "${expectation}: ${value} in place of ${wanted}")
  endif()
endforeach()
string(JSON peak GET "${document}" summaries 1 cumulative_peak) # 15666.65 * 2^20 = 16427673190.4
if(NOT peak EQUAL 16427673190)
  message(FATAL_ERROR "a peak of ${peak} bytes")
endif()

run(2 --logs ${CHECKS}/two_summaries.log --json missing/analysis.json)
expect("${output}" "Analysis complete")
expect_one_line("${errors}" "cannot write 'missing/analysis.json'")

# It takes the place of an earlier analysis, not of another file.
run(0 ${CHECKS}/two_summaries.log --json analysis.json)
file(COPY_FILE ${CHECKS}/two_summaries.log ${SCRATCH}/run.log)
run(2 run.log --json run.log)
expect_one_line("${errors}" "cannot write 'run.log': it exists and is not an analysis")
run(0 run.log)
