# When the disk is full at the end, the summary has been printed, and the status tells.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
execute_process(COMMAND ${PROGRAM} ${small} --steps 1 --text ${CMAKE_CURRENT_LIST_DIR}/twenty_letters.txt --json /dev/full
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT status EQUAL 2)
  message(FATAL_ERROR "exit status ${status} in place of 2")
endif()
if(NOT output MATCHES "\nSegments ")
  message(FATAL_ERROR "the summary is lost:\n${output}")
endif()
if(NOT errors MATCHES "\nnano_gpt: cannot write '/dev/full': [^\n]+\n$")
  message(FATAL_ERROR "no line about the file:\n${errors}")
endif()
