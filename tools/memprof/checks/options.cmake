# --help has each of the options in EXPECTED.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(0 --help)
separate_arguments(EXPECTED UNIX_COMMAND "${EXPECTED}")
expect("${output}" ${EXPECTED})
