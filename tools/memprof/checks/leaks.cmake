# A log of RMM in which every second allocation of 100 bytes is never freed: 512 rounds of two allocations are 256 parts of four.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

set(log "Thread,Time,Action,Pointer,Size,Stream\n")
foreach(round RANGE 1 512)
  math(EXPR leaked "4096 * ${round}" OUTPUT_FORMAT HEXADECIMAL)
  string(APPEND log "1,10:00:00.000001,allocate,0x10,5000,0x0\n1,10:00:00.000001,free,0x10,5000,0x0\n"
    "1,10:00:00.000001,allocate,${leaked},100,0x0\n")
endforeach()
file(WRITE ${SCRATCH}/log.csv "${log}")
execute_process(COMMAND ${PROGRAM} import rmm log.csv -o run.memtrace WORKING_DIRECTORY ${SCRATCH} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)

run(0 run.memtrace --after 1000 --width 100)
expect("${output}" "gpu grows by 200 B per part, all of it from (outside every operation)" "256 parts with as many allocations each"
  "1,000 more parts: 245 KiB of gpu instead of 50.0 KiB") # 51,200 + 1,000 * 200 bytes
run(0 run.memtrace --json --json-out leaks.json)
string(JSON per_step GET "${output}" grows 0 bytes_per_step)
string(JSON blocks GET "${output}" grows 0 blocks)
string(JSON last GET "${output}" grows 0 last_bytes)
if(NOT per_step EQUAL 200 OR NOT blocks EQUAL 512 OR NOT last EQUAL 51200)
  message(FATAL_ERROR "${output}")
endif()
file(READ ${SCRATCH}/leaks.json written)
if(NOT written STREQUAL output)
  message(FATAL_ERROR "--json-out wrote\n${written}")
endif()
run(0 run.memtrace --json-out leaks.json) # its own kind is replaced
run(2 run.memtrace --json-out log.csv)
expect_one_line("${errors}" "cannot write 'log.csv': it exists and is not a report of leaks")
run(2 run.memtrace --json-out run.memtrace)
expect_one_line("${errors}" "it is the input file")

execute_process(COMMAND ${PROGRAM} profile run.memtrace -o run.json WORKING_DIRECTORY ${SCRATCH} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
run(2 run.json)
expect_one_line("${errors}" "'run.json' is a profile, which does not say what was live in each step; give the trace")
run(2 run.memtrace --after 0)
