# One trace in every format that `show` knows, and the tables of facts.
include(${CHECKS}/run.cmake)
execute_process(COMMAND ${WRITER} ${LOG} ${SCRATCH}/run.memtrace COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)

run(0 run.memtrace --format tracker)
if(NOT output MATCHES "^=== Memory Usage Summary ===\n\n--- RMM_LOG ---\n  DRAM: Segment Peak 3.00 MB, " OR
   NOT output MATCHES "\n\n=== Final Totals ===\nOverall DRAM Peak: 3.00 MB, Final DRAM Usage: [0-9.]+ MB\n\n$")
  message(FATAL_ERROR "not the tracker's format:\n${output}")
endif()

run(0 run.memtrace --markdown)
expect("${output}" "# Memory profile\n" "**Peak**: **3.00 MiB (3,145,728 B)** of `gpu`" "\n|---|---:|")

run(0 run.memtrace --csv)
string(REGEX MATCHALL "\n" ends "${output}") # CMake takes the CR before them away
list(LENGTH ends count)
if(NOT count EQUAL 2 OR NOT output MATCHES "^space,segment,count,segment_peak_first," OR NOT output MATCHES "\ngpu,RMM_LOG,1,3145728,")
  message(FATAL_ERROR "not the segments:\n${output}")
endif()
run(0 --csv run.memtrace) # the file is not taken for the name of a table
expect("${output}" "gpu,RMM_LOG,1,3145728,")
run(0 run.memtrace --csv --segments)
expect("${output}" "space,number,step,segment," "gpu,0,0,RMM_LOG,")
run(0 run.memtrace --csv owners)
expect("${output}" "space,operation,others,bytes_at_peak,blocks_at_peak,bytes_at_end\n" "gpu,,0,3145728,")
run(0 run.memtrace --segments --top 9 --blocks 2)
expect("${output}" "\nBlocks    " "\nSegment  ")

run(0 --facts run.memtrace)
expect("${output}" "No facts were recorded.")
run(2 run.memtrace --facts hats)
expect_one_line("${errors}" "'run.memtrace' has no table of facts 'hats'. it has none")

# Facts come from the profile as they do from a trace.
execute_process(COMMAND ${PROGRAM} profile run.memtrace -o run.json WORKING_DIRECTORY ${SCRATCH} COMMAND_ERROR_IS_FATAL ANY)
file(READ ${SCRATCH}/run.json document)
string(JSON document SET "${document}" facts "{\"pytorch_operations\": [{\"name\": \"aten::mm\", \"count\": 3, \"cpu_time_ns\": 2500}], \"hats\": [{\"size\": 7}]}")
file(WRITE ${SCRATCH}/facts.json "${document}")
run(0 facts.json)
expect("${output}" "pytorch_operations (1 row)" "hats (1 row)" "memprof show --facts NAME")
run(0 facts.json --facts pytorch_operations)
expect("${output}" "pytorch_operations (1 row)\n" "aten::mm" "2.50 us")
run(0 facts.json --facts hats --csv)
if(NOT output STREQUAL "size\n7\n")
  message(FATAL_ERROR "not the table:\n${output}")
endif()

# What is asked for and not there is said.
string(JSON many SET "${document}" spaces 0 live_at_peak blocks 5000)
file(WRITE ${SCRATCH}/many.json "${many}")
run(0 many.json --blocks 4000)
expect_one_line("${errors}" "of the 5,000 blocks at the peak the recording names the largest [0-9]+. capture_options::largest_blocks keeps more")
run(0 many.json --blocks 4000 --json) # which has no blocks
if(NOT errors STREQUAL "")
  message(FATAL_ERROR "on stderr: ${errors}")
endif()

# A capture in which nothing was allocated is no answer.
string(JSON document SET "${document}" spaces "[]")
string(JSON document SET "${document}" operations "[]")
string(JSON document SET "${document}" facts "{\"not_captured\": [{\"source\": \"CUDA\", \"reason\": \"no device\"}]}")
file(WRITE ${SCRATCH}/nothing.json "${document}")
run(2 nothing.json)
expect_one_line("${errors}" "'nothing.json' is empty: no allocation was recorded; CUDA not captured: no device")
if(output)
  message(FATAL_ERROR "on stdout:\n${output}")
endif()
