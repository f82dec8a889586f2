# cmake -DPROGRAM=<memprof_bench> -DOUTPUT=<file> -P check_quick_run.cmake: checks that the driver runs and its JSON is complete.
# Ignores the numbers: times never fail a test.
file(REMOVE ${OUTPUT})
execute_process(COMMAND ${PROGRAM} --quick --output ${OUTPUT} RESULT_VARIABLE status OUTPUT_VARIABLE table ERROR_VARIABLE messages)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "ended with ${status}:\n${table}${messages}")
endif()

file(READ ${OUTPUT} document)
string(JSON format GET "${document}" format)
if(NOT format STREQUAL "memprof-benchmarks")
  message(FATAL_ERROR "the format is '${format}'")
endif()
string(JSON count LENGTH "${document}" results)
math(EXPR last "${count} - 1")
set(names "")
foreach(index RANGE ${last})
  string(JSON name GET "${document}" results ${index} name)
  string(JSON samples LENGTH "${document}" results ${index} samples)
  if(samples EQUAL 0)
    message(FATAL_ERROR "'${name}' has no samples")
  endif()
  string(APPEND names "${name}\n")
endforeach()

# One row of each group that needs nothing installed.
foreach(expected IN ITEMS "whole road, 4 threads, freed by another" "profiler's memory" "ledger replay" "caching allocator's model" "10,000 steps, the last"
    "snapshot" "#include <memprof/memprof.hpp>" "mutex \\+ unordered_map, 4 threads" "malloc.hpp, no capture, 4 threads"
    "trace file, pairs: more CPU time" "trace file, pairs: read and folded")
  if(NOT names MATCHES "${expected}")
    message(FATAL_ERROR "no row '${expected}' among:\n${names}")
  endif()
endforeach()
