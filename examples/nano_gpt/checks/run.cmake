# run(<program> <argument>...): sets `output` and `errors`; anything but exit status 0 fails the test.
function(run program)
  execute_process(COMMAND ${program} ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "exit status ${status}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

# A model for tests: small enough for unoptimised builds.
set(small --layers 2 --heads 2 --d-model 8 --seq-len 16 --batch-size 2)
