# The numbers of the tracker's document come out, with either spelling of the options.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(0 --logs ${CHECKS}/two_summaries.log --device-memory 12GiB)
expect("${output}" "Found 2 memory usage summary/summaries\n"
  "calculated from logs: 1848.93 MB (969,369,600 parameters, assuming bf16)\n"
  "Section: tinyllama (memory_efficient)\n" "Section: tinyllama (default)\n"
  "  Peak DRAM:            8,278.65 MB\n" "  Usage:                67.37%\n"
  "  Peak DRAM:            15,666.65 MB\n" "  Usage:                127.50%\n"
  "Analysis complete\n")
if(errors)
  message(FATAL_ERROR "complaints:\n${errors}")
endif()

run(0 --logs ${CHECKS}/two_summaries.log --device_memory 24GiB --model_size=2e9 --optimizer-size 4GB --gradients_size 2000000000
  --use_actual_sizes)
# 2e9 / 2^20 = 1907.35, 4e9 / 2^20 = 3814.70, 24 * 1024 = 24576
expect("${output}" "  Expected (input):     1,907.35 MB\n" "  Expected (input):     3,814.70 MB\n"
  "  Device Memory:        24,576.00 MB\n" "  Fits:                 yes, 8,909.35 MB to spare\n"
  "  Model Parameters:        1,863.25 MB")

# A file needs no flag, --input is one, and - is the standard input: the tables are the same but for where they are from.
run(0 ${CHECKS}/two_summaries.log)
set(tables "${output}")
foreach(spelling "--input;${CHECKS}/two_summaries.log" "--logs;${CHECKS}/two_summaries.log" "--input=${CHECKS}/two_summaries.log")
  run(0 ${spelling})
  if(NOT output STREQUAL tables)
    message(FATAL_ERROR "${spelling}:\n${output}")
  endif()
endforeach()
execute_process(COMMAND ${PROGRAM} analyze - INPUT_FILE ${CHECKS}/two_summaries.log OUTPUT_VARIABLE output RESULT_VARIABLE status)
string(REPLACE "standard input" "${CHECKS}/two_summaries.log" output "${output}")
if(NOT status EQUAL 0 OR NOT output STREQUAL tables)
  message(FATAL_ERROR "-: ${status}\n${output}")
endif()

# Nobody named a device: that of the original, marked as such.
expect("${tables}" "  Device Memory:        12,288.00 MB (the default for a log of tt-train's tracker; --device or --device-memory names another)\n"
  "  Usage:                67.37%\n" "  Fits:                 yes, 4,009.35 MB to spare\n" "  Fits:                 no, 3,378.65 MB too much\n")

# One summary of the log does not fit in 12 GiB, both fit in 24; the tables are the same.
run(1 ${CHECKS}/two_summaries.log --require-fit)
if(NOT output STREQUAL tables OR errors)
  message(FATAL_ERROR "--require-fit:\n${output}${errors}")
endif()
run(0 ${CHECKS}/two_summaries.log --require_fit --device-memory 24GiB)
run(2 ${CHECKS}/two_summaries.log missing.log --require-fit)
run(0 ${CHECKS}/two_summaries.log --device wormhole-12gb) # 12 banks of 1,073,741,792 bytes
expect("${output}" "  Device Memory:        12,288.00 MB\n" "  Fits:                 no, 3,378.65 MB too much\n")
