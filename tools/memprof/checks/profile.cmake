# A profile is read as a log is, to the byte, and its peak is divided into what was live then.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
execute_process(COMMAND ${EXAMPLE} --layers 2 --heads 2 --d-model 8 --seq-len 16 --batch-size 2 --steps 2 --json ${SCRATCH}/run.profile
  OUTPUT_FILE ${SCRATCH}/run.log ERROR_QUIET RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "the example ended with ${status}")
endif()
run(0 --logs run.profile run.log --json analysis.json)
expect("${output}" "Found 2 " "Peak Breakdown (live at the peak)" "Read from: run.profile, memory space cpu")

file(READ ${SCRATCH}/analysis.json analysis)
file(READ ${SCRATCH}/run.profile profile)
string(JSON peak GET "${profile}" spaces 0 cumulative_peak)
string(JSON read_peak GET "${analysis}" summaries 0 cumulative_peak)
string(JSON live GET "${analysis}" summaries 0 peak_parts live_at_peak)
string(JSON accounted GET "${analysis}" summaries 0 peak_parts accounted)
string(JSON other GET "${analysis}" summaries 0 peak_parts other)
string(JSON logged_peak GET "${analysis}" summaries 1 cumulative_peak)
math(EXPR sum "${accounted} + ${other}")
math(EXPR rounding "${peak} - ${logged_peak}")
if(NOT read_peak EQUAL peak OR NOT sum EQUAL peak OR NOT live OR rounding GREATER 10486 OR rounding LESS -10486)
  message(FATAL_ERROR "the profile's peak is ${peak}; read: ${read_peak}, parts: ${sum}, the log's: ${logged_peak}")
endif()

run(2 --logs run.profile --space dram)
expect_one_line("${errors}" "'run.profile': the profile has no memory space 'dram'; it has 'cpu'")

# The profile's capacity is the device's memory, unless one is given.
string(JSON limited SET "${profile}" spaces 0 capacity 1048576)
string(JSON limited SET "${limited}" device "\"small\"")
file(WRITE ${SCRATCH}/limited.profile "${limited}")
run(0 --logs limited.profile)
expect("${output}" "  Device Memory:        1.00 MiB (from the profile: cpu of small)")
run(0 --logs limited.profile --device-memory 2MiB)
expect("${output}" "  Device Memory:        2.00 MiB\n" "the profile was captured for a capacity of 1048576 bytes")

# The capacity of each core is not.
string(JSON per_core SET "${limited}" spaces 0 capacity_is_per_core true)
string(JSON per_core SET "${per_core}" spaces 0 first_shortfall requested 5)
string(JSON per_core SET "${per_core}" spaces 0 first_shortfall core "\"3-1\"")
file(WRITE ${SCRATCH}/per_core.profile "${per_core}")
run(0 --logs per_core.profile)
expect("${output}" "  Device Memory:        no device named" "each core has 1048576 bytes of cpu" "an allocation of 5 bytes on core 3-1")

# What cannot be is an error; a real profile has nothing of it.
if(output MATCHES "contradicts itself")
  message(FATAL_ERROR "${output}")
endif()
string(JSON damaged SET "${profile}" spaces 0 cumulative_peak 1)
file(WRITE ${SCRATCH}/damaged.profile "${damaged}")
run(0 --logs damaged.profile)
expect("${output}" "the profile contradicts itself: cumulative_peak is 1, less than cumulative_current")

# The captions of the program's own logs are their files', not the line about the loss that stands before the summary.
file(COPY_FILE ${SCRATCH}/run.log ${SCRATCH}/other.log)
run(0 run.log other.log)
expect("${output}" "Section: run.log\n" "Section: other.log\n")
