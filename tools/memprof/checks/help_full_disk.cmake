# A help or a version that cannot be written is an error, in one line with status 1.
include(${CHECKS}/run.cmake)
foreach(arguments IN ITEMS "--help" "help;show" "show;--help" "--version")
  execute_process(COMMAND ${PROGRAM} ${arguments} OUTPUT_FILE /dev/full RESULT_VARIABLE status ERROR_VARIABLE errors)
  if(NOT status EQUAL 1)
    message(FATAL_ERROR "${arguments}: exit status ${status} in place of 1\n${errors}")
  endif()
  expect_one_line("${errors}" "^memprof: cannot write to the standard output$")
endforeach()
