# Three stages of a real step of libtorch on the CPU, whose numbers are those of arithmetic.
include(${TOOL}/checks/run.cmake)
unset(ENV{CUDA_VISIBLE_DEVICES})

# read_stage(<name>): sets `allocated`, `delta` and `peak` to the stage's numbers in thousandths of a GiB.
function(read_stage name)
  string(REGEX MATCH "\n${name} +\\| +([0-9.]+) +\\| +n/a +\\| +([-+0-9.]+) +\\| +([0-9.]+) +\\| +n/a" row "${output}")
  if(NOT row)
    message(FATAL_ERROR "no row of ${name} in:\n${output}")
  endif()
  set(columns allocated delta peak)
  foreach(number IN ITEMS ${CMAKE_MATCH_1} ${CMAKE_MATCH_2} ${CMAKE_MATCH_3})
    list(POP_FRONT columns column)
    string(REGEX REPLACE "[+.]" "" number ${number})
    string(REGEX MATCH "^(-?)0*([0-9]+)$" number ${number})
    set(${column} ${CMAKE_MATCH_1}${CMAKE_MATCH_2} PARENT_SCOPE)
  endforeach()
endfunction()
# expect_number(<what> <number> <expected>): equal but for the last digit, which is rounded.
function(expect_number what number expected)
  math(EXPR difference "${number} - (${expected})")
  if(difference GREATER 1 OR difference LESS -1)
    message(FATAL_ERROR "${what} is ${number}/1000 GiB, not ${expected}:\n${output}")
  endif()
endfunction()

# V = 8192, D = 1024, T = 32: 2 V D + V + 12 D^2 + 13 D + T D + 2 D = 29,416,448 parameters, or 0.110 GiB in float32.
set(model --layers 1 --d-model 1024 --n-heads 8 --seq-len 32 --batch-size 2 --base-vocab-size 8192 --num-special-tokens 0)
foreach(bf16 IN ITEMS auto off on)
  set(shown off)
  if(bf16 STREQUAL on)
    set(shown on)
  endif()
  run(0 ${model} --train-step-profile --profile-device cpu --profile-bf16 ${bf16} --profile-lr 0.01 --profile-seed 7)
  expect("${output}" "\nTrain Step Profile (real allocs)\nDevice=cpu | bf16_autocast=${shown} | B=2, T=32, D=1024, H=8, L=1, V=8192\n"
    "\nStage          | Alloc GiB | Reserved GiB | Delta Alloc GiB | Peak Alloc GiB | Peak Reserved GiB\n")
  read_stage(optimizer.step)
  expect_number("${bf16}: what the optimizer adds" ${delta} 219) # two moments
  expect_number("${bf16}: live at the end" ${allocated} 438)     # parameters, gradients, two moments
  if(peak LESS allocated)
    message(FATAL_ERROR "a peak of ${peak}/1000 GiB:\n${output}")
  endif()
  set(optimizer_peak ${peak})
  read_stage(backward)
  expect_number("${bf16}: live before the optimizer" ${allocated} 219) # parameters and gradients
  read_stage(forward\\+loss)
  set(kept_${bf16} ${delta})
  math(EXPR whole "${optimizer_peak} / 1000")
  math(EXPR thousandths "${optimizer_peak} % 1000 + 1000")
  string(SUBSTRING ${thousandths} 1 3 thousandths)
  expect("${output}" "\nMax stage peak allocated: ${whole}.${thousandths} GiB\n")
endforeach()
if(NOT kept_auto EQUAL kept_off)
  message(FATAL_ERROR "auto is not off on the CPU: ${kept_auto} and ${kept_off}")
endif()
# Casts keep copies of the weights of all linear layers: half the bytes of V D + 12 D^2 numbers, 0.039 GiB.
math(EXPR copies "${kept_on} - ${kept_off}")
if(copies LESS 37 OR copies GREATER 41)
  message(FATAL_ERROR "bf16 keeps ${kept_on} after the forward pass, float32 ${kept_off}")
endif()

# The seed and the rate change no bytes.
run(0 --layers 1 --d-model 64 --n-heads 4 --seq-len 16 --batch-size 2 --base-vocab-size 97 --train-step-profile --profile-device auto
  --profile-lr 0 --profile-seed 0)
expect("${output}" "\nforward+loss   | " "\nbackward       | " "\noptimizer.step | ")

# A Llama is run by the plain trainer, here too.
run(0 --config tinyllama-1.1b --layers 1 --d-model 64 --n-heads 4 --base-vocab-size 97 --seq-len 16 --train-step-profile
  --profile-device cpu)
expect("${output}" "Device=cpu" "\noptimizer.step | ")

run(2 --layers 1 --train-step-profile --profile-device tpu)
expect_one_line("${errors}" "--profile-device")
# With libtorch of the CPU, and where no GPU is to be seen.
set(ENV{CUDA_VISIBLE_DEVICES} "")
run(2 --layers 1 --train-step-profile --profile-device cuda)
expect_one_line("${errors}" "Requested --profile-device cuda, but CUDA is unavailable")
