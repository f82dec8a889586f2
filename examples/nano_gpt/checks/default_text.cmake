# Without --text the text beside the sources is read.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(${PROGRAM} ${small} --steps 2)
if(NOT output MATCHES "Loss: [0-9.]+ -> [0-9.]+ in 2 steps" OR NOT output MATCHES "\nPeak      [0-9.]+ .iB [(]")
  message(FATAL_ERROR "no result or no summary:\n${output}")
endif()
if(NOT errors MATCHES "^step 1/2  loss [0-9.]+  [0-9.]+ ms/step\nstep 2/2 [^\n]*\n$")
  message(FATAL_ERROR "no progress:\n${errors}")
endif()
