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
# In a terminal of its own, as zsh completes only there.
file(WRITE ${SCRATCH}/complete.zsh [[
zmodload zsh/zpty
zpty shell 'TERM=dumb zsh -f -i'
zpty -w shell "PS1=; PROMPT=; unsetopt zle_bracketed_paste; fpath=(. \$fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-prompt ''; bindkey '^I' complete-word; echo READ''Y"
repeat 100; do zpty -r shell line '*READY*' && break; done
zpty -w -n shell "$1"$'\t'
sleep 0.7
zpty -w -n shell $'\x15echo DON''E\n'
while zpty -r shell line; do print -r -- "$line"; [[ $line == *DONE* ]] && break; done
zpty -d shell
]])
function(expect_zsh line expected)
  execute_process(COMMAND ${zsh} -f complete.zsh "${line}" WORKING_DIRECTORY ${SCRATCH} OUTPUT_VARIABLE found TIMEOUT 60)
  string(FIND "${found}" "${expected}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "after \"${line}\" zsh does not offer \"${expected}\":\n${found}")
  endif()
endfunction()
expect_zsh("memprof water" "memprof waterfall")
expect_zsh("memprof show --markd" "--markdown")
expect_zsh("memprof show --format t" "--format tracker")
expect_zsh("memprof show --format=t" "--format=tracker")
expect_zsh("memprof tt-mlir vis" "visualize")
