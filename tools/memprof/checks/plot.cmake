# A log's segments and parts are drawn, as PNG and as SVG; what was there stays if they cannot be.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
find_program(gnuplot gnuplot)
if(NOT gnuplot)
  message("skipped: there is no gnuplot")
  return()
endif()
run(0 ${CHECKS}/two_summaries.log --output both --title "It's `touch run` \"$HOME\"")
expect("${output}" "Picture saved to: both.png\n" "Picture saved to: both.svg\n")
file(READ ${SCRATCH}/both.png begin LIMIT 8 HEX)
if(NOT begin STREQUAL 89504e470d0a1a0a)
  message(FATAL_ERROR "both.png begins with ${begin}")
endif()
file(READ ${SCRATCH}/both.svg picture)
string(TOLOWER "${picture}" picture)
# The published numbers; the colours of parameters, gradients, the optimizer and activations on a page: #0072b2, #e69f00, #009e73, #56b4e9.
expect("${picture}" "it's `touch run` \"$home\"" "tinyllama (memory_efficient), dram: peak 8,278.65 mib in backward_pass (4 of 4), 7,428.04 mib"
  "tinyllama (default), dram: peak 15,666.65 mib" "9,636.02 mib" "optimizer_creation" "rgb(  0, 114, 178)" "rgb(230, 159,   0)"
  "rgb(  0, 158, 115)" "rgb( 86, 180, 233)")
if(EXISTS ${SCRATCH}/run)
  message(FATAL_ERROR "a title was run")
endif()

file(READ ${SCRATCH}/both.png before HEX)
run(2 ${SCRATCH}/both.svg -o both.png)
file(READ ${SCRATCH}/both.png after HEX)
if(NOT before STREQUAL after)
  message(FATAL_ERROR "a picture of a picture")
endif()
run(2 ${CHECKS}/two_summaries.log --output missing/picture.png)
expect_one_line("${errors}" "cannot write 'missing/picture.png'")

# A picture takes the place of a picture, not of another file.
file(WRITE ${SCRATCH}/notes.png "notes")
run(2 ${CHECKS}/two_summaries.log -o notes.png)
expect_one_line("${errors}" "cannot write 'notes.png': it exists and is not a picture")
file(READ ${SCRATCH}/notes.png notes)
if(NOT notes STREQUAL "notes")
  message(FATAL_ERROR "the notes are gone")
endif()

# Totals alone have nothing to draw but the title.
file(WRITE ${SCRATCH}/totals.log "=== Memory Usage Summary ===\nOverall DRAM Peak: 9.00 MB, Final DRAM Usage: 8.00 MB\n")
run(0 totals.log -o totals.svg)
file(READ ${SCRATCH}/totals.svg picture)
expect("${picture}" "dram: peak 9.00 MiB, 8.00 MiB at the end")

# A picture is no place for a hundred summaries.
file(READ ${CHECKS}/two_summaries.log log)
string(REPEAT "${log}" 5 log)
file(WRITE ${SCRATCH}/many.log "${log}")
run(0 many.log -o many.svg)
expect_one_line("${errors}" "only the first 8 of 10 memory spaces are drawn")
