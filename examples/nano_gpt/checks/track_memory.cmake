# --track_memory, as in tt-train: the capture is the first iteration, whose last segment has tt-train's name, and is printed in the
# tracker's format when it ends. Training goes on, except without dispatch: there is no memory to compute on.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

# The names of the segments, in order.
function(segments_of text result)
  string(REGEX MATCHALL "\n--- [A-Z_]+ ---" names "\n${text}")
  list(TRANSFORM names REPLACE "\n--- ([A-Z_]+) ---" "\\1")
  set(${result} ${names} PARENT_SCOPE)
endfunction()

run(${PROGRAM} ${small} --micro-batches 2 --steps 3 --track_memory)
segments_of("${output}" segments)
# Each micro-batch keeps segments of its own: a name may come again.
set(expected MODEL_CREATION OPTIMIZER_CREATION FORWARD_PASS BACKWARD_PASS FORWARD_PASS BACKWARD_PASS FIRST_ITERATION_COMPLETE)
if(NOT segments STREQUAL expected)
  message(FATAL_ERROR "the segments are ${segments}, not ${expected}:\n${output}")
endif()
if(errors MATCHES "memprof")
  message(FATAL_ERROR "a complaint:\n${errors}")
endif()
if(NOT output MATCHES "^Number of parameters: [0-9]+\n=== Memory Usage Summary ===\n" OR
   NOT output MATCHES "\nOverall DRAM Peak: [0-9.]+ MB, Final DRAM Usage: [0-9.]+ MB\n.*\nLoss: [0-9.]+ -> [0-9.]+ in 3 steps")
  message(FATAL_ERROR "no summary of the first iteration before the result of three steps:\n${output}")
endif()

string(REGEX MATCH "Loss: [0-9.]+ -> [0-9.]+" tracked "${output}")
run(${PROGRAM} ${small} --micro-batches 2 --steps 3)
if(NOT output MATCHES "\n${tracked} ")
  message(FATAL_ERROR "tracking changes the loss, ${tracked}:\n${output}")
endif()

execute_process(COMMAND ${CMAKE_COMMAND} -E env MEMPROF=1 ${PROGRAM} ${small} --track_memory RESULT_VARIABLE status ERROR_VARIABLE errors OUTPUT_QUIET)
if(NOT status EQUAL 2 OR NOT errors MATCHES "--track-memory ends the capture that MEMPROF asks for: omit one of them")
  message(FATAL_ERROR "within a session: exit status ${status}\n${errors}")
endif()

run(${PROGRAM} ${small} --steps 3 --track-memory --no-dispatch)
if(NOT errors MATCHES "^step 1/1  loss unknown" OR NOT output MATCHES "\n--- FIRST_ITERATION_COMPLETE ---\n" OR
   NOT output MATCHES "\nLoss: unknown, nothing was dispatched in 1 steps")
  message(FATAL_ERROR "without dispatch:\n${output}${errors}")
endif()
