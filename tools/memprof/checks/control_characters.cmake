# Names with a NUL, an escape sequence and C1 controls: a file gets every byte and every line, a terminal no command. Names come
# from the recording, from paths and from arguments; they go to stdout and to stderr.
include(${CHECKS}/run.cmake)
find_program(script script)
execute_process(COMMAND ${WRITER} run.memtrace true WORKING_DIRECTORY ${SCRATCH} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)

# By length: the line with the NUL, and what follows it.
execute_process(COMMAND ${PROGRAM} show --csv run.memtrace WORKING_DIRECTORY ${SCRATCH} OUTPUT_FILE ${SCRATCH}/out.csv ERROR_QUIET)
file(READ ${SCRATCH}/out.csv hex HEX)
string(REGEX MATCHALL ".." bytes "${hex}")
list(FILTER bytes INCLUDE REGEX "^0a$")
list(LENGTH bytes lines)
if(NOT lines EQUAL 5) # titles, MODEL_CREATION, the two strange names, and what comes after them
  message(FATAL_ERROR "${lines} lines in:\n${hex}")
endif()
if(NOT hex MATCHES "4e00554c")
  message(FATAL_ERROR "the name with a NUL is not whole:\n${hex}")
endif()

if(NOT script)
  message("skipped: there is no script(1)")
  return()
endif()
string(ASCII 27 escape)
string(ASCII 7 bell)
set(strange "a${escape}]0;title${bell}b${escape}[2Jc")
file(WRITE ${SCRATCH}/check.sh "cd '${SCRATCH}'\nexport TERM=xterm\nstty -opost\n\
for file in run.memtrace '${strange}.log' '${strange}'; do\n\
  for subcommand in show 'show --csv' 'show --markdown' 'show --format tracker' 'show --facts' report analyze trace 'trace --json' 'profile -o p.json' \
'import auto -o o.memtrace' 'export --format csv -o tables' 'plot -o picture.png' 'waterfall run.memtrace' leaks 'leaks --json' 'what-if --rank' 'what-if --json --rank' merge 'merge --markdown' 'merge --json' 'compare run.memtrace' 'compare --markdown run.memtrace' 'compare --json run.memtrace' 'tt-mlir analyze' 'tt-mlir visualize' \
xplane 'estimate --config' 'fit --config' 'show --top'; do\n\
    \"${PROGRAM}\" $subcommand \"$file\"\n\
  done\n\
  \"${PROGRAM}\" \"$file\"; \"${PROGRAM}\" help \"$file\"; \"${PROGRAM}\" show \"--$file\"; \"${PROGRAM}\" show run.memtrace --space \"$file\"\n\
done\n")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy ${SCRATCH}/run.memtrace "${SCRATCH}/${strange}")
file(WRITE "${SCRATCH}/${strange}.log" "${strange}\n=== Memory Usage Summary ===\n--- ${strange} ---\n\
  DRAM: Segment Peak 1.00 MB, Allocations 1.00 MB, Deallocations 0.00 MB, Segment Change +1.00 MB\n\
  DRAM: Cumulative Peak 1.00 MB, Cumulative Current 1.00 MB\n=== Final Totals ===\nOverall DRAM Peak: 1.00 MB, Final DRAM Usage: 1.00 MB\n")
execute_process(COMMAND ${script} -qec "sh ${SCRATCH}/check.sh" ${SCRATCH}/typescript INPUT_FILE /dev/null OUTPUT_QUIET)
file(READ ${SCRATCH}/typescript hex HEX)
# ESC other than the tool's own colours and progress line, BEL, a single C1 byte.
string(REGEX REPLACE "1b5b(306d|316d|313b33316d|33336d|326d|4b)" "" hex "${hex}")
string(REGEX MATCHALL ".." bytes "${hex}")
list(FIND bytes 1b has_escape)
list(FIND bytes 07 has_bell)
list(FIND bytes 00 has_nul)
list(FIND bytes 9b has_c1)
foreach(place IN ITEMS ${has_escape} ${has_bell} ${has_nul} ${has_c1})
  if(NOT place EQUAL -1)
    math(EXPR begin "${place} - 60")
    if(begin LESS 0)
      set(begin 0)
    endif()
    list(SUBLIST bytes ${begin} 100 around)
    string(REPLACE ";" "" around "${around}")
    message(FATAL_ERROR "a control character reaches the terminal: ${around}")
  endif()
endforeach()
file(READ ${SCRATCH}/typescript text)
if(text MATCHES "x0d")
  message(FATAL_ERROR "the line ends of CSV are escaped:\n${text}")
endif()
# JSON has its own escapes.
expect("${text}" [[31m \u009b"]])
string(FIND "${text}" [["kind":"segment_end","name":"\u001b(0ALARM\u0007"]] position)
if(position EQUAL -1 OR text MATCHES [["kind":"segment_end"[^}]*\\x]])
  message(FATAL_ERROR "what a terminal gets is not JSON:\n${text}")
endif()
expect("${text}" "N\\x00UL" "\\x1b]0;title\\x07b\\x1b[2Jc")
