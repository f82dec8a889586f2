# The profile's phases are those of training, and their bytes are what the numbers of parameters and tokens say.
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)
file(MAKE_DIRECTORY ${SCRATCH})
run(${PROGRAM} ${small} --steps 2 --text ${CMAKE_CURRENT_LIST_DIR}/twenty_letters.txt --json ${SCRATCH}/profile.json)

# vocabulary V = 20, width C = 8, positions T = 16, layers L = 2, heads H = 2, batch B = 2
# block: two norms 2 * 2C, qkv 3C*C + 3C, projection C*C + C, mlp 8C*C + 5C = 12C*C + 13C
# model: tables (V + T) * C, final norm 2C, output C * V
math(EXPR parameters "2 * (12 * 8 * 8 + 13 * 8) + (20 + 16) * 8 + 2 * 8 + 8 * 20")
if(NOT output MATCHES "Number of parameters: ${parameters}\n")
  message(FATAL_ERROR "expected ${parameters} parameters:\n${output}")
endif()

# Kept for the backward pass, floats: a block keeps 16 vectors a token, two statistics of each norm and the probabilities of
# each head; the end keeps its input, the normalised input, two statistics and the probabilities of the vocabulary.
math(EXPR tokens "2 * 16")
math(EXPR kept_floats "2 * (16 * ${tokens} * 8 + 4 * ${tokens} + 2 * 2 * 16 * 16) + ${tokens} * (2 * 8 + 2 + 20)")
math(EXPR batch "2 * 4 * ${tokens}")
math(EXPR model "4 * ${parameters}")
math(EXPR optimizer "8 * ${parameters}")
math(EXPR kept "4 * ${kept_floats}")
math(EXPR first_forward "${batch} + ${kept}")
math(EXPR backward "${model} - ${kept}")

set(expected
  MODEL_CREATION ${model}
  OPTIMIZER_CREATION ${optimizer}
  FORWARD_PASS ${first_forward}
  BACKWARD_PASS ${backward}
  OPTIMIZER_STEP -${model}
  FORWARD_PASS ${kept} # the second batch takes the place of the first
  BACKWARD_PASS ${backward}
  OPTIMIZER_STEP -${model}
  END_TRACE -${batch})

file(READ ${SCRATCH}/profile.json profile)
string(JSON segments GET "${profile}" spaces 0 segments)
string(JSON count LENGTH "${segments}")
set(actual)
math(EXPR last "${count} - 1")
foreach(index RANGE ${last})
  string(JSON name GET "${segments}" ${index} segment)
  string(JSON change GET "${segments}" ${index} segment_change)
  list(APPEND actual ${name} ${change})
endforeach()
if(NOT actual STREQUAL expected)
  message(FATAL_ERROR "expected ${expected}\nbut got  ${actual}")
endif()
