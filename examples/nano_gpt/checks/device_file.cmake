# A device from a file gives its space and its padding; exceeding its capacity is no failure.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
file(MAKE_DIRECTORY ${SCRATCH})
file(WRITE ${SCRATCH}/device.json [[{"format": "memprof-device", "version": 1, "name": "board", "layout": "row_major",
  "spaces": [{"name": "hbm", "capacity": 8192, "alignment": 64, "size_multiple": 4096}]}]])
run(${PROGRAM} ${small} --steps 1 --text ${CMAKE_CURRENT_LIST_DIR}/twenty_letters.txt --device ${SCRATCH}/device.json
  --json ${SCRATCH}/profile.json)
file(READ ${SCRATCH}/profile.json profile)
string(JSON name GET "${profile}" spaces 0 name)
string(JSON model GET "${profile}" spaces 0 segments 0 segment_change)
# Two tables, twelve tensors in each of two blocks, gain and shift, the output: all are smaller than what they are rounded up to.
math(EXPR expected "4096 * (2 + 2 * 12 + 2 + 1)")
if(NOT name STREQUAL "hbm" OR NOT model EQUAL expected)
  message(FATAL_ERROR "${model} bytes in ${name}, in place of ${expected} in hbm")
endif()
