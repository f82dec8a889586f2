# Tables that cannot be written are an error.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
execute_process(COMMAND ${PROGRAM} analyze --logs ${CHECKS}/two_summaries.log OUTPUT_FILE /dev/full RESULT_VARIABLE status ERROR_VARIABLE errors)
if(NOT status EQUAL 2)
  message(FATAL_ERROR "exit status ${status} in place of 2")
endif()
expect_one_line("${errors}" "cannot write the tables: ")
