# One line an event.
include(${CHECKS}/run.cmake)
execute_process(COMMAND ${WRITER} ${LOG} ${SCRATCH}/run.memtrace COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
run(0 run.memtrace)
expect("${output}" "       0.000000 ms  thread 1   allocate             space=gpu address=0x7f1c00000000 bytes=1048576"
  "       1.100000 ms  thread 2   out_of_memory        space=gpu bytes=1099511627776"
  "       1.250000 ms  thread 2   deallocate           space=gpu address=0x7f1c00100000 bytes=2097152"
  "segment_end          name=RMM_LOG" "capture_end")
run(0 run.memtrace --json)
string(REGEX MATCHALL "[^\n]+" lines "${output}")
set(frees 0)
foreach(line IN LISTS lines)
  string(JSON kind GET "${line}" kind)
  if(kind STREQUAL "deallocate")
    math(EXPR frees "${frees} + 1")
    string(JSON address GET "${line}" address)
    string(JSON time GET "${line}" time_ns)
  endif()
endforeach()
if(NOT frees EQUAL 1 OR NOT address EQUAL 139758236860416 OR NOT time EQUAL 1250000)
  message(FATAL_ERROR "${frees} frees, the last of ${address} at ${time}:\n${output}")
endif()
