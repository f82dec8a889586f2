# A model of GPT-2's dimensions on a GPU that is not there: what it needs, whether that fits, and where it fails.
set(arguments --no-dispatch --device cuda --layers 12 --heads 12 --d-model 768 --seq-len 512 --batch-size 4 --steps 2)
function(ask size expected)
  execute_process(COMMAND ${PROGRAM} ${arguments} --fit ${size} OUTPUT_VARIABLE output ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output MATCHES "On a GPU, what is in cuda:0 here: ${expected}")
    message(FATAL_ERROR "--fit ${size} should say \"${expected}\":\n${output}")
  endif()
endfunction()

ask(80GB "Fits in ")
# 85 million parameters of four bytes do not fit twice, so it fails at the latest where the first gradients are.
ask(500MB "Does not fit in 476.84 MB: out of memory requesting [0-9.]+ MB in operation [^\n]*aten::")
