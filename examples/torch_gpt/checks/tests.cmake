# Tests of the built programs. Each is a script; what it checks stands at its top.
function(torch_gpt_add_check name script)
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE definitions)
  add_test(NAME "torch_gpt: ${name}"
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:torch_gpt> -DPLAIN_PROGRAM=$<TARGET_FILE:torch_gpt_plain>
      -DSOURCES=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/.. -DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/checks ${definitions}
      -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${script}.cmake)
  set_tests_properties("torch_gpt: ${name}" PROPERTIES LABELS torch)
endfunction()

torch_gpt_add_check("memprof takes fewer than 10 changed lines" ../../checks/changed_lines FEWER_THAN=10)
torch_gpt_add_check("a GPT has the categories of its dimensions" phases MODEL=gpt)
torch_gpt_add_check("a Llama has the categories of its dimensions" phases MODEL=llama)
torch_gpt_add_check("a GPT has the same categories without dispatch" phases MODEL=gpt MODE=--no-dispatch)
torch_gpt_add_check("a Llama has the same categories without dispatch" phases MODEL=llama MODE=--no-dispatch)
torch_gpt_add_check("says whether it fits a GPU that is not there, and where it fails" fits)
torch_gpt_add_check("profiling changes no loss" same_losses)
torch_gpt_add_check("a trace file takes at most 6 bytes an event" ../../checks/trace_size "ARGUMENTS=--steps 20")
torch_gpt_add_check("refuses heads that do not divide the width" refuses "EXPECTED=--heads 5 does not divide --d-model 64"
  "ARGUMENTS=--heads 5")
torch_gpt_add_check("refuses an unknown option" refuses "EXPECTED=unknown option '--hats': --help lists all" "ARGUMENTS=--hats 3")
torch_gpt_add_check("refuses an unknown model" refuses "EXPECTED=--model cannot be 'bert': give gpt or llama" "ARGUMENTS=--model bert")
torch_gpt_add_check("refuses a value that is no number" refuses "EXPECTED=--steps cannot be 'ten'" "ARGUMENTS=--steps ten")
torch_gpt_add_check("refuses a profile in a missing folder" refuses "EXPECTED=cannot write 'missing/p.json'"
  "ARGUMENTS=--json missing/p.json")
torch_gpt_add_check("refuses a device that is not there" refuses "EXPECTED=--device gpu-24gb needs --no-dispatch"
  "ARGUMENTS=--device gpu-24gb")
torch_gpt_add_check("refuses a GPU that is not there" refuses "EXPECTED=--device cuda: libtorch finds no GPU here"
  "ARGUMENTS=--device cuda --fit 24GB")
set_tests_properties("torch_gpt: refuses a GPU that is not there" PROPERTIES ENVIRONMENT CUDA_VISIBLE_DEVICES=)
torch_gpt_add_check("refuses a device that is no GPU" refuses "EXPECTED=--device wormhole-12gb is no GPU"
  "ARGUMENTS=--no-dispatch --device wormhole-12gb")
torch_gpt_add_check("refuses a preset that is not known" refuses "EXPECTED=unknown device preset 'gpu-7gb'"
  "ARGUMENTS=--no-dispatch --device gpu-7gb")
torch_gpt_add_check("refuses a size that is none" refuses "EXPECTED=24" "ARGUMENTS=--fit 24Q")

# What `memprof estimate --torch` says, beside this model.
add_executable(torch_gpt_estimate ${CMAKE_CURRENT_LIST_DIR}/estimate.cpp model.cpp)
target_include_directories(torch_gpt_estimate PRIVATE ${PROJECT_SOURCE_DIR}/examples)
memprof_share_torch_headers(torch_gpt_estimate)
set_target_properties(torch_gpt_estimate PROPERTIES UNITY_BUILD ON)
add_test(NAME "torch_gpt: estimated peaks of GPTs are within 0.1 %, and what differs has a name" COMMAND torch_gpt_estimate)
set_tests_properties("torch_gpt: estimated peaks of GPTs are within 0.1 %, and what differs has a name" PROPERTIES LABELS torch)
