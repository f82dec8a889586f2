# What is found is confirmed by runs, and JSON has the same.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
run(0 --device 80GB --config llama-7b --dtype bf16 --json-out fit.json)
if(NOT output MATCHES "^Yes, with blocks recomputed: a step of B=1, T=4096 fits on 80GB; with all activations kept it does not[.]\n\nFit: ")
  message(FATAL_ERROR "it does not begin with the answer:\n${output}")
endif()
expect("${output}" "Fit: 80GB, 74.506 GiB of cuda:0, through PyTorch's caching allocator\n" "all kept          | none "
  "Parts, all kept, 1: parameters " "Besides: CUDA context: not known for this device, and not counted\n"
  "  all kept: 1 does not fit, as estimated to the byte\n" "does not fit, as estimated to the byte\n"
  "Smallest preset for B=1, T=4096: gpu-141gb; with recomputation gpu-80gb\n")
file(READ ${SCRATCH}/fit.json document)
string(JSON none GET "${document}" found 0 size)
string(JSON batch GET "${document}" found 1 size)
string(JSON reserved GET "${document}" found 1 need reserved_bytes)
string(JSON above GET "${document}" found 1 one_more reserved_bytes)
if(NOT none EQUAL 0 OR batch LESS 1 OR reserved GREATER 80000000000 OR NOT above GREATER 80000000000)
  message(FATAL_ERROR "${document}")
endif()
math(EXPR next "${batch} + 1")
expect("${output}" "  blocks recomputed: ${batch} fits, ${next} does not fit, as estimated to the byte\n")

run(0 --device wormhole-12gb --config tinyllama-1.1b --dtype bf16 --longest-sequence)
expect("${output}" "Fit: wormhole-12gb, 12.000 GiB of dram\n" "Fixed: B=1\n" "Longest sequence")
if(output MATCHES "NOT as estimated")
  message(FATAL_ERROR "${output}")
endif()

run(0 --device 1GB --config gpt2-124m --batch-size 8 --seq-len 64)
if(NOT output MATCHES "^No: a step of B=8, T=64 does not fit on 1GB, even with blocks recomputed[.]\n")
  message(FATAL_ERROR "${output}")
endif()
run(0 --device 80GB --config gpt2-124m)
if(NOT output MATCHES "^Yes: a step of B=1, T=1024 fits on 80GB with all activations kept[.]\n")
  message(FATAL_ERROR "${output}")
endif()

# What the trainer does not have is estimated, and said not to be confirmed.
run(0 --device gpu-80gb --config llama-7b --dtype bf16 --attention fused --optimizer adam-8bit)
expect("${output}" "all kept: the plain trainer has no attention but plain, so this is not confirmed by a run\n"
  ": CUDA context 1.40, parameters ")

file(READ ${SCRATCH}/fit.json document)
run(0 --device 80GB --config llama-7b --dtype bf16 --json)
if(NOT output STREQUAL document)
  message(FATAL_ERROR "--json prints\n${output}")
endif()

# A program where a size belongs.
file(WRITE ${SCRATCH}/trainer "")
run(2 --device 80GB ./trainer)
expect_one_line("${errors}" "unexpected argument './trainer'; .*after '--', programs that were built with memprof .* of the Python package; 'memprof run -- PROGRAM' records any program$")
