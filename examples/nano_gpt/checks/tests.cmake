# Tests of the built programs. Each is a script; what it checks stands at its top.
set(checks ${CMAKE_CURRENT_LIST_DIR})
set(scratch ${CMAKE_CURRENT_BINARY_DIR}/checks)
set(short_text ${checks}/twenty_letters.txt)

# nano_gpt_add_check(<name> <script> [<variable>=<value>...])
function(nano_gpt_add_check name script)
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE definitions)
  string(MAKE_C_IDENTIFIER "${name}" folder)
  add_test(NAME "nano_gpt: ${name}"
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:nano_gpt_program> -DPLAIN_PROGRAM=$<TARGET_FILE:nano_gpt_plain>
      -DSOURCES=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.. -DSCRATCH=${scratch}/${folder} ${definitions}
      -P ${checks}/${script}.cmake)
  set_tests_properties("nano_gpt: ${name}" PROPERTIES LABELS example)
endfunction()

nano_gpt_add_check("phases add up to the byte" phases)
nano_gpt_add_check("the default text trains" default_text)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  nano_gpt_add_check("docs/reading.md shows what the demo prints" readme)
  nano_gpt_add_check("a trace file takes at most 6 bytes an event" ../../checks/trace_size "ARGUMENTS=--steps 20")
else() # all 200 steps would take minutes
  nano_gpt_add_check("docs/reading.md shows what the demo prints" readme STEPS=3)
endif()
nano_gpt_add_check("profiling changes no loss" same_losses)
nano_gpt_add_check("memprof takes fewer than 14 changed lines" ../../checks/changed_lines FEWER_THAN=14)
set_tests_properties("nano_gpt: memprof takes fewer than 14 changed lines" PROPERTIES LABELS static)
set(published_models nano gpt2-124m gpt2-1.5b tinyllama-1.1b llama-7b llama-70b)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize=thread")
  # The thread sanitizer leaves a program between 0.5 and 1.5 TiB of addresses, by chance; the largest model takes more than 0.5.
  message(STATUS "nano_gpt: the check of the published models leaves out llama-70b: the thread sanitizer has too few addresses")
  list(REMOVE_ITEM published_models llama-70b)
endif()
list(JOIN published_models " " published_models)
nano_gpt_add_check("without dispatch the published models run, and no loss is printed" no_dispatch "CONFIGS=${published_models}")
nano_gpt_add_check("--track_memory prints the first iteration as tt-train's tracker does" track_memory)
nano_gpt_add_check("a device comes from a file" device_file)
nano_gpt_add_check("--help lists every option" help)
nano_gpt_add_check("a refused run leaves an existing profile alone" existing_profile)
if(EXISTS /dev/full)
  nano_gpt_add_check("a profile that cannot be written costs only the file" full_disk)
endif()

# nano_gpt_refuses(<what> <regular expression for the line on stderr> <argument>...): exit status 2 and exactly one line.
function(nano_gpt_refuses what expected)
  string(JOIN " " arguments ${ARGN})
  nano_gpt_add_check("refuses ${what}" refuses "EXPECTED=${expected}" "ARGUMENTS=${arguments}")
endfunction()

nano_gpt_refuses("heads that do not divide the width" "--heads 5 does not divide --d-model 64: try --heads 4" --heads 5 --d-model 64)
nano_gpt_refuses("key heads that do not divide the heads" "--kv-heads 3 does not divide --heads 4: try --kv-heads 2" --kv-heads 3)
nano_gpt_refuses("more key heads than heads" "--kv-heads 8 does not divide --heads 4: try --kv-heads 4" --kv-heads 8)
nano_gpt_refuses("heads of odd width with rotary positions" "--d-model 12 and --heads 4 make heads of odd width"
  --config llama-7b --d-model 12 --heads 4)
nano_gpt_refuses("an unknown config" "--config cannot be 'gpt5': give one of nano, gpt2-124m, " --config gpt5)
nano_gpt_refuses("an unknown dtype" "--dtype cannot be 'fp12': give fp32, bf16 or fp16" --dtype fp12)
nano_gpt_refuses("a dtype of no weights" "--dtype cannot be 'int32'" --dtype int32 --no-dispatch)
nano_gpt_refuses("to compute with a dtype that is only counted" "--dtype fp8 can only be counted: add --no-dispatch" --dtype fp8)
nano_gpt_refuses("block floats without tiles" "--dtype bfp8 exists only in tiles: give a --device that has them"
  --dtype bfp8 --no-dispatch --device gpu-80gb)
nano_gpt_refuses("an unknown device" "unknown device preset 'abacus'" --device abacus)
nano_gpt_refuses("a vocabulary smaller than the text's" "the text has 20 different characters but --vocabulary is 19"
  --vocabulary 19 --text ${short_text} --seq-len 10)
nano_gpt_add_check("the plain program refuses to count" refuses PLAIN=ON "EXPECTED=--no-dispatch needs memprof" "ARGUMENTS=--no-dispatch")
nano_gpt_refuses("a value that is no number" "--layers cannot be 'two': give a whole number" --layers two)
nano_gpt_refuses("a number with a tail" "--steps cannot be '10x'" --steps=10x)
nano_gpt_refuses("a fraction" "--steps cannot be '1.5'" --steps 1.5)
nano_gpt_refuses("a negative value" "--batch-size cannot be '-1'" --batch-size -1)
nano_gpt_refuses("zero" "--seq-len cannot be '0': give a whole number from 1" --seq-len 0)
nano_gpt_refuses("a value beyond all integers" "--d-model cannot be '99999999999999999999'" --d-model 99999999999999999999)
nano_gpt_refuses("an unknown option" "unknown option '--hats': --help lists all" --hats 3)
nano_gpt_refuses("a stray argument" "unknown option 'text.txt'" text.txt)
nano_gpt_refuses("an option without its value" "--steps needs a value" --steps)
nano_gpt_refuses("an empty file name" "--json needs the name of a file" --json=)
nano_gpt_refuses("a missing text" "cannot find the text file 'missing.txt': check the path" --text missing.txt)
nano_gpt_refuses("a directory as text" "is a directory: give --text a file in it" --text ${checks})
nano_gpt_refuses("a text as short as the sequence"
  "the text has 20 characters but --seq-len 20 needs at least one more than that: give a longer text" --text ${short_text} --seq-len 20)
nano_gpt_refuses("a profile in a missing folder" "cannot write 'missing/p.json': make the folder 'missing' first" --json missing/p.json)
nano_gpt_refuses("a page in a missing folder" "cannot write 'missing/p.html': make the folder 'missing' first" --html missing/p.html)
nano_gpt_refuses("a directory as profile" "a directory: give --json a file in it" --json ${checks})
nano_gpt_refuses("a model that no machine holds" "out of memory: try a smaller --batch-size"
  --d-model 1000000000000000000 --text ${short_text} --seq-len 10)
