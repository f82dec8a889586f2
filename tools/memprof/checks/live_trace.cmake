# A trace that a capture is writing, and one whose process died before its capture ended: what happened by then is read, with
# one line on stderr and exit status 2.
include(${CHECKS}/run.cmake)
string(REPLACE " " ";" ARGUMENTS "${ARGUMENTS}")
string(JOIN " " command ${PROGRAM} ${SUBCOMMAND} ${ARGUMENTS})
execute_process(COMMAND ${WRITER} run.memtrace "${command}" WORKING_DIRECTORY ${SCRATCH}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT status EQUAL 2)
  message(FATAL_ERROR "exit status ${status} in place of 2\n${output}${errors}")
endif()
expect("${output}" "${EXPECTED}")
expect_one_line("${errors}" "'run.memtrace' is still being written; only what has been recorded so far was read")

run(2 ${ARGUMENTS})
expect("${output}" "${EXPECTED}")
expect_one_line("${errors}" "'run.memtrace' was left by a process that died before its capture ended")
