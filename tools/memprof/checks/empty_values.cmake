# "--option=" with nothing behind it is an empty name, which is refused; it does not take the next argument for its name. What
# waterfall writes as JSON replaces only what it wrote.
include(${CHECKS}/run.cmake)
file(WRITE ${SCRATCH}/text.log "step 1\n")

# expect_untouched(<subcommand> <option> <argument>...)
function(expect_untouched subcommand option)
  set(SUBCOMMAND ${subcommand})
  run(2 ${option}= ${ARGN})
  expect_one_line("${errors}" "${option}: the name is empty$")
  file(GLOB files RELATIVE ${SCRATCH} ${SCRATCH}/*)
  file(READ ${SCRATCH}/text.log content)
  if(NOT files STREQUAL "text.log" OR NOT content STREQUAL "step 1\n")
    message(FATAL_ERROR "${subcommand} ${option}= changed a file: ${files}\n${content}")
  endif()
endfunction()
expect_untouched(waterfall --json-out text.log text.log text.log)
expect_untouched(waterfall --html text.log text.log text.log)
expect_untouched(report --output text.log)
expect_untouched(profile --output text.log)
set(SUBCOMMAND tt-mlir)
run(2 run --output-dir= ./text.log)
expect_one_line("${errors}" "--output-dir: the name is empty$")

# The value of an option that is no name may be empty.
set(SUBCOMMAND report)
run(2 --title= text.log)
expect_one_line("${errors}" "cannot read 'text.log'")
