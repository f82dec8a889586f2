# Whoever asks for help gets every option, and how sizes are written.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(0 --help)
expect("${output}" --input --logs --device --device-memory --model-size --optimizer-size --gradients-size --visualize-peak --use-actual-sizes --require-fit --title
  --output --json --space "12GiB (12 * 2^30)")
execute_process(COMMAND ${PROGRAM} --version OUTPUT_VARIABLE version RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR NOT version MATCHES "^memprof [0-9]+[.][0-9]+[.][0-9]+\n$")
  message(FATAL_ERROR "status ${status}, version ${version}")
endif()
