# Bash's own completion, and zsh's where it is there, run the scripts that the program prints.
include(${CHECKS}/run.cmake)
find_program(bash bash)
find_program(zsh zsh)
if(NOT bash)
  message("skipped: there is no bash")
  return()
endif()
run(0 bash)
file(WRITE ${SCRATCH}/memprof.bash "${output}")
run(0 zsh)
file(WRITE ${SCRATCH}/_memprof "${output}")

# expect_completion(<line> <word>...): the words are offered for the line, whose last word may be begun.
function(expect_completion line)
  file(WRITE ${SCRATCH}/complete.sh "source memprof.bash\nread -ra COMP_WORDS <<< \"\$1\"\n[[ \$1 == *' ' ]] && COMP_WORDS+=('')\n\
COMP_CWORD=\$(( \${#COMP_WORDS[@]} - 1 ))\ncomplete -p memprof > /dev/null || exit 1\n_memprof\nprintf '%s\\n' \"\${COMPREPLY[@]}\"\n")
  string(REPLACE "=" " = " words "${line}") # as readline divides it
  string(REGEX REPLACE "= $" "=" words "${words}")
  execute_process(COMMAND ${bash} complete.sh "${words}" WORKING_DIRECTORY ${SCRATCH} OUTPUT_VARIABLE found ERROR_VARIABLE complaint
    COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "\n$" "" found "${found}")
  string(REPLACE "\n" ";" found "${found}")
  if(NOT found STREQUAL "${ARGN}" OR complaint)
    message(FATAL_ERROR "after \"${line}\" bash offers \"${found}\", not \"${ARGN}\"\n${complaint}")
  endif()
endfunction()
expect_completion("memprof sh" show)
expect_completion("memprof wat" waterfall)
expect_completion("memprof tt-mlir " run log analyze visualize)
expect_completion("memprof show --mark" --markdown)
expect_completion("memprof show run.memtrace --fo" --format)
expect_completion("memprof show --format " summary tracker)
expect_completion("memprof show --format t" tracker)
expect_completion("memprof show --format=t" tracker)
expect_completion("memprof show --format=" summary tracker)
expect_completion("memprof show --top 3 --col" --color)
expect_completion("memprof show --space show --markd" --markdown)
expect_completion("memprof import heap" heaptrack)
expect_completion("memprof import heaptrack heap") # a file
expect_completion("memprof show ")
expect_completion("memprof show --top ")
expect_completion("memprof help exp" export)
expect_completion("memprof completion " bash zsh)
expect_completion("memprof estimate --step --optimizer adam" adam adamw adam-8bit)

if(NOT zsh)
  message("skipped: zsh (there is none)")
  return()
endif()
# Without a terminal, zsh's builtins for completion are not there; these stand for them.
file(WRITE ${SCRATCH}/complete.zsh [=[
compdef() { :; }
compset() { :; }
_files() { print files; }
_describe() { print -rl -- ${(P)2}; }
source ./_memprof
words=("$@")
CURRENT=$#words
_memprof
]=])
function(expect_zsh expected)
  execute_process(COMMAND ${zsh} -f complete.zsh ${ARGN} WORKING_DIRECTORY ${SCRATCH} OUTPUT_VARIABLE found ERROR_VARIABLE complaint
    TIMEOUT 60 COMMAND_ERROR_IS_FATAL ANY)
  if(NOT "\n${found}" MATCHES "\n${expected}[:\n]" OR complaint)
    message(FATAL_ERROR "after \"${ARGN}\" zsh does not offer \"${expected}\":\n${found}${complaint}")
  endif()
endfunction()
expect_zsh(waterfall memprof wat)
expect_zsh(--markdown memprof show --markd)
expect_zsh(tracker memprof show --format t)
expect_zsh(tracker memprof show --format=t)
expect_zsh(visualize memprof tt-mlir vis)
expect_zsh(files memprof show run)
expect_zsh(files memprof import heaptrack run)
