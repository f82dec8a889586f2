# Whoever asks for help gets every option, on stdout.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(${PROGRAM} --help)
foreach(option --config --layers --heads --kv-heads --d-model --mlp-width --vocabulary --seq-len --batch-size --micro-batches
    --steps --dtype --device --no-dispatch --memory-efficient --track-memory --seed --text --json --html --help)
  if(NOT output MATCHES "\n  ${option} ")
    message(FATAL_ERROR "${option} is not in the help:\n${output}")
  endif()
endforeach()
