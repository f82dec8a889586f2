# run(<expected status> <argument>...): runs `memprof analyze`, or another SUBCOMMAND, in SCRATCH; sets `output` and `errors`.
if(NOT SUBCOMMAND)
  set(SUBCOMMAND analyze)
endif()
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})

function(run expected)
  execute_process(COMMAND ${PROGRAM} ${SUBCOMMAND} ${ARGN} WORKING_DIRECTORY ${SCRATCH}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE errors)
  if(NOT status EQUAL expected)
    message(FATAL_ERROR "exit status ${status} in place of ${expected}\n${output}${errors}")
  endif()
  set(output "${output}" PARENT_SCOPE)
  set(errors "${errors}" PARENT_SCOPE)
endfunction()

# expect(<text> <part>...): every part stands in the text.
function(expect text)
  foreach(part IN LISTS ARGN)
    string(FIND "${text}" "${part}" position)
    if(position EQUAL -1)
      message(FATAL_ERROR "there is no \"${part}\" in:\n${text}")
    endif()
  endforeach()
endfunction()

# expect_one_line(<text> <regular expression for the line without its end>)
function(expect_one_line text pattern)
  string(REGEX REPLACE "\n$" "" line "${text}")
  if(NOT text MATCHES "^memprof[^\n]*\n$" OR NOT line MATCHES "${pattern}")
    message(FATAL_ERROR "not one line that matches \"${pattern}\":\n${text}")
  endif()
endfunction()
