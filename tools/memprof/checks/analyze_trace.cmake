# A trace is as good as a profile.
include(${CHECKS}/run.cmake)
execute_process(COMMAND ${WRITER} ${LOG} ${SCRATCH}/run.memtrace COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
run(0 --logs run.memtrace)
expect("${output}" "3.0")
