# A file that cannot be read costs no other file, but the exit status tells.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
file(WRITE ${SCRATCH}/empty.log "")
run(2 --logs ${CHECKS}/two_summaries.log empty.log)
expect("${output}" "Found 2 " "Analysis complete")
expect_one_line("${errors}" "'empty.log': it is empty")
