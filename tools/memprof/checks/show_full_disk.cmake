# The exit status says whether the summary reached its reader.
include(${CHECKS}/run.cmake)
execute_process(COMMAND ${WRITER} ${LOG} ${SCRATCH}/run.memtrace COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
execute_process(COMMAND ${PROGRAM} show run.memtrace WORKING_DIRECTORY ${SCRATCH} OUTPUT_FILE /dev/full
  RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 1)
  message(FATAL_ERROR "exit status ${status} in place of 1\n${errors}")
endif()
expect_one_line("${errors}" "cannot write to the standard output")
