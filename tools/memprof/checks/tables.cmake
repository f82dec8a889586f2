# The numbers of the tracker's document come out, with either spelling of the options.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(0 --logs ${CHECKS}/two_summaries.log)
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
