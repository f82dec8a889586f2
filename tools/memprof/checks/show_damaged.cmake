# A trace that is cut off: its beginning on stdout, one line on stderr, exit status 2.
include(${CHECKS}/run.cmake)
execute_process(COMMAND ${WRITER} ${LOG} ${SCRATCH}/run.memtrace COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
file(SIZE ${SCRATCH}/run.memtrace size)
math(EXPR size "${size} - 1")
execute_process(COMMAND head -c ${size} run.memtrace WORKING_DIRECTORY ${SCRATCH} OUTPUT_FILE ${SCRATCH}/cut.memtrace)
run(2 cut.memtrace)
if(NOT output STREQUAL "") # not even one chunk is whole
  message(FATAL_ERROR "numbers of nothing:\n${output}")
endif()
expect_one_line("${errors}" "'cut.memtrace' is cut off within a chunk after 0 of 1 chunks")
