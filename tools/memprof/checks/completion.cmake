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
expect_completion("memprof convert run.memtrace --format pp" pprof)
expect_completion("memprof import heap" heaptrack)
expect_completion("memprof import heaptrack heap") # a file
expect_completion("memprof show ")
expect_completion("memprof show --top ")
expect_completion("memprof help exp" export)
expect_completion("memprof completion " bash zsh)
expect_completion("memprof estimate --step --optimizer adam" adam adamw adam-8bit)

execute_process(COMMAND ${zsh} -fc "zmodload zsh/zpty" RESULT_VARIABLE status ERROR_QUIET)
if(NOT zsh OR NOT status EQUAL 0)
  message("skipped: zsh (there is none with its module zpty)")
  return()
endif()
# An interactive zsh in a terminal of its own: each argument is typed, Tab pressed, and the line printed as it then is.
set(ENV{ZDOTDIR} ${SCRATCH})
set(ENV{TERM} dumb)
file(WRITE ${SCRATCH}/only_here.memtrace "")
file(WRITE ${SCRATCH}/type.zsh [=[
zmodload zsh/zpty
zpty -b shell zsh --no-globalrcs -i
until_text() {
  local piece
  text=
  repeat 600; do
    while zpty -rt shell piece; do
      text+=$piece
      [[ $text == ${~1} ]] && return
    done
    sleep 0.1
  done
  print -u2 -r -- "there is no '$1' in: $text"
  exit 1
}
until_text '*ready>*'
for line; do
  zpty -wn shell "$line"$'\t\C-xp'
  until_text '*<<*>>*'
  print -r -- "${${text##*<<}%%>>*}"
done
zpty -d shell
]=])
function(expect_zsh) # <line> <line after Tab>...
  set(lines)
  set(expected "")
  while(ARGN)
    list(POP_FRONT ARGN line completed)
    list(APPEND lines ${line})
    string(APPEND expected "${completed}\n")
  endwhile()
  execute_process(COMMAND ${zsh} -f type.zsh ${lines} WORKING_DIRECTORY ${SCRATCH} OUTPUT_VARIABLE found ERROR_VARIABLE complaint
    RESULT_VARIABLE status TIMEOUT 120)
  if(NOT found STREQUAL expected OR complaint OR NOT status EQUAL 0)
    message(FATAL_ERROR "zsh completes\n${lines}\nto\n${found}and not to\n${expected}${complaint} (${status})")
  endif()
endfunction()
set(start [=[
PROMPT='ready>'
autoload -Uz compinit
print_line() { zle -I; print -r -- "<<$BUFFER>>"; BUFFER=; }
zle -N print_line
bindkey '^Xp' print_line
]=])
# As a package installs it, in a folder of zsh's functions.
file(WRITE ${SCRATCH}/.zshrc "${start}fpath=($PWD $fpath)\ncompinit -u -D\n")
expect_zsh(
  "memprof sh" "memprof show "
  "memprof wat" "memprof waterfall "
  "memprof tt-mlir vis" "memprof tt-mlir visualize "
  "memprof help exp" "memprof help export "
  "memprof show --markd" "memprof show --markdown "
  "memprof show --format t" "memprof show --format tracker "
  "memprof show --format=t" "memprof show --format=tracker "
  "memprof show --space show --markd" "memprof show --space show --markdown "
  "memprof import heap" "memprof import heaptrack "
  "memprof show only" "memprof show only_here.memtrace "
  "memprof import heaptrack only" "memprof import heaptrack only_here.memtrace "
  "memprof report --output only" "memprof report --output only_here.memtrace "
  "memprof report --output=only" "memprof report --output=only_here.memtrace "
  "memprof show --no-such" "memprof show --no-such")
# As the help says for a program that is not installed.
file(WRITE ${SCRATCH}/.zshrc "${start}compinit -u -D\nsource <(\"${PROGRAM}\" completion zsh)\n")
file(REMOVE ${SCRATCH}/_memprof)
expect_zsh("memprof sh" "memprof show " "memprof show --format t" "memprof show --format tracker ")
