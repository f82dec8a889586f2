# Four processes that a launcher has given their ranks, of which one needs more; traces, profiles and both; ranks that left a part or nothing.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

# train(<rank> <rank's variable> <number's variable> <argument>...): as rank<rank>.memtrace and rank<rank>.json in the folder `job`.
file(MAKE_DIRECTORY ${SCRATCH}/job)
function(train rank rank_variable size_variable)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=RANK --unset=WORLD_SIZE ${rank_variable}=${rank} ${size_variable}=4
      ${TRAINER} --steps 3 --layers 2 --d-model 32 --heads 4 --seq-len 16 --vocabulary 97 --batch-size 2 ${ARGN}
      --trace-file job/train_rank${rank}.memtrace --json job/train_rank${rank}.json
    WORKING_DIRECTORY ${SCRATCH} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()
foreach(rank RANGE 3)
  train(${rank} OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE) # as mpirun does
endforeach()
run(0 job)
expect("${output}" "Ranks     no rank stands out: the peak of each is " "4 ranks of 4, peaks of cpu: " "imbalance 0.0 %"
  "Peak in segments" "FORWARD_PASS")

train(2 RANK WORLD_SIZE --batch-size 6) # as torchrun does
run(0 job --width 80 --json-out merge.json)
expect("${output}" "Ranks     rank 2 peaks " " above the median of " "forward/block/" "since step 1 (")
file(READ ${SCRATCH}/merge.json document)
foreach(suffix IN ITEMS memtrace json)
  file(GLOB files RELATIVE ${SCRATCH} ${SCRATCH}/job/*.${suffix})
  run(0 ${files} --json)
  foreach(key IN ITEMS sum_bytes least_bytes median_bytes greatest_bytes standing_out)
    string(JSON of_folder GET "${document}" ${key})
    string(JSON of_files GET "${output}" ${key})
    if(NOT of_folder EQUAL of_files)
      message(FATAL_ERROR "${key} is ${of_folder} for the folder, and ${of_files} for ${files}")
    endif()
  endforeach()
  string(JSON rank GET "${output}" findings 0 run rank)
  string(JSON change GET "${output}" findings 0 change_bytes)
  string(JSON sum GET "${output}" findings 0 other_change_bytes)
  string(JSON count LENGTH "${output}" findings 0 owners)
  math(EXPR last "${count} - 1")
  foreach(row RANGE ${last})
    string(JSON bytes GET "${output}" findings 0 owners ${row} change_bytes)
    math(EXPR sum "${sum} + ${bytes}")
  endforeach()
  if(NOT rank EQUAL 2 OR NOT sum EQUAL change OR change LESS 1)
    message(FATAL_ERROR "rank ${rank}: ${change}, and its owners ${sum}\n${output}")
  endif()
endforeach()
run(0 job --markdown)
expect("${output}" "**rank 2 peaks " "| rank | host | peak | from median | in |" "| 3 | ")

# A profile takes precedence; one that cannot be read leaves its trace.
file(WRITE ${SCRATCH}/job/train_rank2.json "{\"format\": \"memprof-profile\", ")
run(0 job)
expect("${output}" "rank 2 peaks ")
# A missing rank; one that died while it wrote its profile; one whose trace is cut off.
file(REMOVE ${SCRATCH}/job/train_rank0.memtrace ${SCRATCH}/job/train_rank0.json ${SCRATCH}/job/train_rank1.memtrace
  ${SCRATCH}/job/train_rank1.json ${SCRATCH}/job/train_rank2.json ${SCRATCH}/job/train_rank3.json)
file(WRITE ${SCRATCH}/job/memory_profile_20250113_103000_rank1.tmp4711 "{")
file(SIZE ${SCRATCH}/job/train_rank3.memtrace size)
math(EXPR size "${size} * 2 / 3")
execute_process(COMMAND head -c ${size} job/train_rank3.memtrace WORKING_DIRECTORY ${SCRATCH} OUTPUT_FILE ${SCRATCH}/cut)
file(RENAME ${SCRATCH}/cut ${SCRATCH}/job/train_rank3.memtrace)
run(2 job --width 100)
expect("${output}" "Missing   rank 0 of 4 left no recording" "rank 1: it was ended while it wrote 'job/memory_profile_20250113_103000_rank1.tmp4711'")
expect_one_line("${errors}" "train_rank3.memtrace' is cut off ")

# What does not belong together, or to nothing.
file(MAKE_DIRECTORY ${SCRATCH}/nothing)
file(WRITE ${SCRATCH}/nothing/config.json "{}")
run(2 nothing)
expect_one_line("${errors}" "'nothing' has neither profiles [(][.]json[)] nor traces [(][.]memtrace[)]")
run(2 job missing.json)
expect("${errors}" "cannot read 'missing.json'")
file(COPY_FILE ${SCRATCH}/job/train_rank2.memtrace ${SCRATCH}/again.memtrace)
run(2 job/train_rank2.memtrace again.memtrace)
expect_one_line("${errors}" "'job/train_rank2.memtrace' is a second recording of rank 2")
run(2 again.memtrace --space l1)
expect_one_line("${errors}" "no rank has a memory space 'l1'; there are cpu")
run(2 again.memtrace --json-out again.memtrace)
expect_one_line("${errors}" "it is the input file")
file(WRITE ${SCRATCH}/text.log "text")
run(2 again.memtrace --json-out text.log)
expect_one_line("${errors}" "cannot write 'text.log': it exists and is not a merge of ranks")
run(0 again.memtrace --json-out merge.json) # its own kind is replaced
