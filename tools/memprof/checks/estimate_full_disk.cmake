# A full disk and a closed stdout are errors, in one line and with status 2.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
foreach(target IN ITEMS ">/dev/full" ">&-")
  execute_process(COMMAND sh -c "exec \"$0\" ${ARGUMENTS} ${target}" ${PROGRAM} WORKING_DIRECTORY ${SCRATCH}
    RESULT_VARIABLE status ERROR_VARIABLE errors)
  if(NOT status EQUAL 2)
    message(FATAL_ERROR "${target}: exit status ${status} in place of 2\n${errors}")
  endif()
  expect_one_line("${errors}" "cannot write the ")
endforeach()
