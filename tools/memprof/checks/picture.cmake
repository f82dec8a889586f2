# The picture comes as PNG and SVG, by the name that it is given.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
find_program(gnuplot gnuplot)
if(NOT gnuplot)
  message("skipped: there is no gnuplot")
  return()
endif()

function(expect_begin name hexadecimal)
  string(LENGTH ${hexadecimal} digits)
  math(EXPR bytes "${digits} / 2")
  file(READ ${SCRATCH}/${name} begin LIMIT ${bytes} HEX)
  if(NOT begin STREQUAL hexadecimal)
    message(FATAL_ERROR "${name} begins with ${begin}")
  endif()
endfunction()
set(png 89504e470d0a1a0a)
set(xml 3c3f786d6c)

run(0 --logs ${CHECKS}/two_summaries.log --visualize_peak)
expect("${output}" "Visualization saved to: memory_peak_visualization.png\n")
expect_begin(memory_peak_visualization.png ${png})

run(0 --logs ${CHECKS}/two_summaries.log --device-memory 12GiB --visualize-peak --title "It's `touch run` \"$HOME\"" --output both)
expect_begin(both.png ${png})
expect_begin(both.svg ${xml})
file(READ ${SCRATCH}/both.svg picture)
# Every bar's parts, in the script's colours: #cccccc, #4da6b8, #e789ab, #cec0fa, #e38a42, and the limit in red.
string(TOLOWER "${picture}" picture)
expect("${picture}" "it's `touch run` \"$home\"" "total: 8,278.65 mb" "total: 15,666.65 mb" "tinyllama (default)" "device memory limit"
  "rgb(204, 204, 204)" "rgb( 77, 166, 184)" "rgb(231, 137, 171)" "rgb(206, 192, 250)" "rgb(227, 138,  66)" "rgb(255,   0,   0)")
if(EXISTS ${SCRATCH}/run)
  message(FATAL_ERROR "a title was run")
endif()

run(0 --logs ${CHECKS}/two_summaries.log --visualize-peak --output one.svg --output two.png)
expect_begin(one.svg ${xml})
expect_begin(two.png ${png})

run(2 --logs ${CHECKS}/two_summaries.log --visualize-peak --output missing/picture.png)
expect("${output}" "Analysis complete")
expect_one_line("${errors}" "cannot write 'missing/picture.png'")
