# What memprof adds to the training loop of an example, its includes too: lines that only one of the two files in SOURCES has, as
# diff counts them, blank ones left out. They are fewer than FEWER_THAN.
find_program(diff diff)
if(NOT diff)
  message("skipped: there is no diff")
  return()
endif()
execute_process(COMMAND ${diff} ${SOURCES}/train_plain.cpp ${SOURCES}/train.cpp RESULT_VARIABLE status OUTPUT_VARIABLE difference)
string(REGEX MATCHALL "\n[<>] [^\n]" lines "${difference}") # the first line is never one: it says where
list(LENGTH lines count)
if(NOT status EQUAL 1 OR count EQUAL 0 OR NOT count LESS FEWER_THAN)
  message(FATAL_ERROR "${count} changed lines:\n${difference}")
endif()
message("${count} changed lines")
