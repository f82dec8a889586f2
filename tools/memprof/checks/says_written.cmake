# On a terminal the program names the files that it wrote, if the user did not; elsewhere it prints nothing. `script` makes a
# terminal.
include(${CHECKS}/run.cmake)
find_program(script script)
if(NOT script)
  message("skipped: there is no script(1)")
  return()
endif()
execute_process(COMMAND ${WRITER} ${LOG} ${SCRATCH}/run.memtrace COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)

# on_terminal(<arguments>): sets `output`
function(on_terminal arguments)
  execute_process(COMMAND ${script} -qec "${PROGRAM} ${arguments}" /dev/null WORKING_DIRECTORY ${SCRATCH} INPUT_FILE /dev/null
    OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(SUBCOMMAND report)
run(0 run.memtrace)
if(NOT "${output}${errors}" STREQUAL "")
  message(FATAL_ERROR "report prints where nobody looks: ${output}${errors}")
endif()
on_terminal("report run.memtrace")
if(NOT output MATCHES "wrote run[.]html\r?\n")
  message(FATAL_ERROR "report on a terminal prints: ${output}")
endif()

set(SUBCOMMAND export)
run(0 run.memtrace --format csv -o tables)
if(NOT "${output}" STREQUAL "")
  message(FATAL_ERROR "export prints where nobody looks: ${output}")
endif()
on_terminal("export run.memtrace --format csv -o tables")
foreach(table IN ITEMS runs labels segments operations blocks events)
  expect("${output}" "wrote tables/${table}.csv")
endforeach()
