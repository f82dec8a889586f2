# Parameters, gradients and moments, computed from the dimensions and compared with the profile of the last OPTIMIZER_STEP. MODE
# is empty or --no-dispatch.
set(layers 2)
set(width 16)
set(time 12)
set(vocabulary 256)
file(MAKE_DIRECTORY ${SCRATCH})
set(json ${SCRATCH}/${MODEL}${MODE}.json)
execute_process(
  COMMAND ${PROGRAM} --model ${MODEL} --layers ${layers} --heads 2 --d-model ${width} --seq-len ${time} --batch-size 2 --steps 3 --json ${json} ${MODE}
  OUTPUT_VARIABLE output ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)

if(MODEL STREQUAL llama)
  # A block: two norms; queries, keys, values and projection; three matrices of SwiGLU. Outside: a norm, embedding and head.
  math(EXPR block "2*${width} + 4*${width}*${width} + 3*4*${width}*${width}")
  math(EXPR parameters "${layers}*${block} + ${width} + 2*${vocabulary}*${width}")
else()
  # With biases, two matrices in the MLP, and positions.
  math(EXPR block "4*${width} + 4*${width}*${width} + 4*${width} + 2*4*${width}*${width} + 5*${width}")
  math(EXPR parameters "${layers}*${block} + 2*${width} + 2*${vocabulary}*${width} + ${time}*${width}")
endif()
if(NOT output MATCHES "Number of parameters: ${parameters}\n")
  message(FATAL_ERROR "the program does not have ${parameters} parameters:\n${output}")
endif()

# The set at the peak of the segment: an update works on one parameter at a time, so all of these are there.
file(READ ${json} profile)
string(JSON segments LENGTH "${profile}" spaces 0 segments)
math(EXPR last "${segments} - 2") # before END_TRACE
string(JSON segment GET "${profile}" spaces 0 segments ${last})
string(JSON name GET "${segment}" segment)
if(NOT name STREQUAL "OPTIMIZER_STEP")
  message(FATAL_ERROR "segment ${last} is ${name}")
endif()
math(EXPR bytes "4*${parameters}")
math(EXPR moments "2*${bytes}")
foreach(expected IN ITEMS "parameter ${bytes}" "gradient ${bytes}" "optimizer_state ${moments}")
  separate_arguments(pair UNIX_COMMAND "${expected}")
  list(GET pair 0 category)
  list(GET pair 1 wanted)
  string(JSON rows LENGTH "${segment}" live_at_peak by_category)
  math(EXPR rows "${rows} - 1")
  set(found none)
  foreach(row RANGE ${rows})
    string(JSON owner GET "${segment}" live_at_peak by_category ${row} owner)
    if(owner STREQUAL category)
      string(JSON found GET "${segment}" live_at_peak by_category ${row} bytes)
    endif()
  endforeach()
  if(NOT found EQUAL wanted)
    message(FATAL_ERROR "${category} is ${found} bytes, should be ${wanted}")
  endif()
endforeach()
