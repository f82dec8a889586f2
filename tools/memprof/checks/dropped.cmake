# A trace that lacks its first events: each subcommand says so in one line, and succeeds.
include(${CHECKS}/run.cmake)
execute_process(COMMAND ${WRITER} ${SCRATCH}/run.memtrace COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE " " ";" ARGUMENTS "${ARGUMENTS}")
run(0 ${ARGUMENTS})
expect("${output}" "${EXPECTED}")
expect_one_line("${errors}" "^memprof: 'run.memtrace' lacks its first [0-9]+ events, because it was recorded with a trace_limit")
