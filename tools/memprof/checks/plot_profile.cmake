# The picture of a profile has its peak, its segments and what was live; --space and --by choose.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
find_program(gnuplot gnuplot)
if(NOT gnuplot)
  message("skipped: there is no gnuplot")
  return()
endif()
execute_process(COMMAND ${EXAMPLE} --config tinyllama-1.1b --vocabulary 96 --dtype bf16 --device wormhole-12gb --no_dispatch
  --memory_efficient --json ${SCRATCH}/run.json OUTPUT_QUIET ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
run(0 run.json -o run.svg)
file(READ ${SCRATCH}/run.svg picture)
# docs/no_dispatch.md: its peak is 7971.88 MB, of which the moments are two tensors like each of the parameters' 1854.38.
expect("${picture}" "run.json, wormhole-12gb, no dispatch" "dram: peak 7,971.88 MiB after " "capacity 12,288.00 MiB" "1,854.38 MiB   23.3 %"
  "3,708.75 MiB   46.5 %" "optimizer_state" "time (")
run(0 run.json -o run.svg --by operation --space dram)
file(READ ${SCRATCH}/run.svg picture)
expect("${picture}" "live at the peak, by operation" "adamw")

# What was never used is not drawn, and a run in which nothing was is refused.
file(READ ${SCRATCH}/run.json profile)
string(JSON profile SET "${profile}" spaces 0 cumulative_peak 0)
file(WRITE ${SCRATCH}/idle.json "${profile}")
run(2 idle.json -o idle.png)
expect_one_line("${errors}" "'idle.json': nothing to draw: no memory was allocated")
if(EXISTS ${SCRATCH}/idle.png)
  message(FATAL_ERROR "a picture of nothing")
endif()
