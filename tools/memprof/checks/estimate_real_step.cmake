# Three stages with numbers, which are those of the estimate of the same step.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
set(model --layers 2 --d-model 64 --n-heads 4 --seq-len 64 --batch-size 8 --base-vocab-size 997)
foreach(option "" --profile-bf16=on)
  set(dtype)
  set(shown off)
  if(option)
    set(dtype --dtype bf16)
    set(shown on)
  endif()
  run(0 ${model} --train-step-profile --profile-lr 0.01 --profile-seed 7 ${option} --step ${dtype})
  expect("${output}" "\nTrain Step Profile (real allocs)\nDevice=cpu | bf16_autocast=${shown} | B=8, T=64, D=64, H=4, L=2, V=1000\n"
    "\nStage          | Alloc GiB | Reserved GiB | Delta Alloc GiB | Peak Alloc GiB | Peak Reserved GiB\n"
    "\nforward+loss   | " "\nbackward       | " "\noptimizer.step | ")
  string(REGEX MATCH "\nPeak: ([0-9.]+ GiB)" estimated "${output}")
  set(estimated ${CMAKE_MATCH_1})
  expect("${output}" "\nMax stage peak allocated: ${estimated}\n")
endforeach()

# A step that the machine has no memory for is not begun.
run(0 --train-step-profile --batch-size 100000)
expect("${output}" "\nOOM during train-step profile: the step needs " " is available\n")
