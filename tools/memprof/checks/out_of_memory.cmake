# A file without lines, larger than the memory there is, costs no other file.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
execute_process(COMMAND truncate -s 4G ${SCRATCH}/large.log RESULT_VARIABLE status) # a hole: it takes no disk
if(NOT status EQUAL 0)
  message("skipped: the file system has no large files")
  return()
endif()
execute_process(COMMAND sh -c "ulimit -v 300000 && exec '${PROGRAM}' analyze --logs large.log '${CHECKS}/two_summaries.log'"
  WORKING_DIRECTORY ${SCRATCH} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
file(REMOVE ${SCRATCH}/large.log)
if(NOT status EQUAL 2)
  message(FATAL_ERROR "exit status ${status}: ${errors}")
endif()
expect("${output}" "Found 2 " "Analysis complete")
expect_one_line("${errors}" "'large.log': line 1: longer than 67108864")
