# ARGUMENTS end the program with status 2 and one line on stderr, which matches EXPECTED.
separate_arguments(ARGUMENTS UNIX_COMMAND "${ARGUMENTS}")
execute_process(COMMAND ${PROGRAM} ${ARGUMENTS} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT status EQUAL 2 OR NOT errors MATCHES "^torch_gpt: [^\n]*\n$" OR NOT errors MATCHES "${EXPECTED}")
  message(FATAL_ERROR "exit status ${status}, which should be 2 with one line \"${EXPECTED}\":\n${output}${errors}")
endif()
