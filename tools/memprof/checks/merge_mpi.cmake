# Four processes of mpirun, of which one has a larger batch: it is named, with the operation that needs most more.
find_program(mpirun mpirun)
if(NOT mpirun)
  message("skipped: mpirun is not installed")
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/run.cmake)

file(MAKE_DIRECTORY ${SCRATCH}/job)
# Open MPI refuses to start as root, and more processes than cores, unless asked to. Others ignore these variables.
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
execute_process(COMMAND ${mpirun} -n 4 sh -c "batch=2; case $OMPI_COMM_WORLD_RANK$PMI_RANK in 1) batch=5; esac; \
exec '${TRAINER}' --steps 2 --layers 2 --d-model 32 --heads 4 --seq-len 16 --vocabulary 97 --batch-size $batch --trace-file 'job/train_rank%r.memtrace'"
  WORKING_DIRECTORY ${SCRATCH} RESULT_VARIABLE status OUTPUT_VARIABLE printed ERROR_VARIABLE printed)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "mpirun ended with ${status}:\n${printed}")
endif()
run(0 job --json)
foreach(expected "ranks 4" "world_size 4" "missing_count 0" "standing_out 1" "findings;0;run;rank 1" "findings;0;owners;0;operation forward/block/mlp/expand")
  string(REGEX MATCH "^(.*) (.*)$" ignored "${expected}")
  set(keys ${CMAKE_MATCH_1})
  set(wanted ${CMAKE_MATCH_2})
  string(JSON value GET "${output}" ${keys})
  if(NOT value STREQUAL wanted)
    message(FATAL_ERROR "${keys} is ${value}, not ${wanted}, in\n${output}")
  endif()
endforeach()
