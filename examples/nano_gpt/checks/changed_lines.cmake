# What memprof adds to the training loop: lines that only one of the two files has, as diff counts them.
find_program(diff diff)
if(NOT diff)
  message("skipped: there is no diff")
  return()
endif()
execute_process(COMMAND ${diff} ${SOURCES}/train_plain.cpp ${SOURCES}/train.cpp RESULT_VARIABLE status OUTPUT_VARIABLE difference)
string(REGEX MATCHALL "\n[<>]" lines "${difference}") # the first line is never one: it says where
list(LENGTH lines count)
if(NOT status EQUAL 1 OR count EQUAL 0 OR NOT count LESS 15)
  message(FATAL_ERROR "${count} changed lines:\n${difference}")
endif()
message("${count} changed lines")
