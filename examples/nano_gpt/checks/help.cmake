# Whoever asks for help gets every option, on stdout.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(${PROGRAM} --help)
foreach(option --layers --heads --d-model --seq-len --batch-size --steps --seed --text --json --help)
  if(NOT output MATCHES "\n  ${option} ")
    message(FATAL_ERROR "${option} is not in the help:\n${output}")
  endif()
endforeach()
