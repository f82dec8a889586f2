# Tests of the built program. Each is a script; what it checks stands at its top.
set(checks ${CMAKE_CURRENT_LIST_DIR})
set(scratch ${CMAKE_CURRENT_BINARY_DIR}/checks)

# tool_add_check(<subcommand> <name> <script> [<variable>=<value>...])
function(tool_add_check subcommand name script)
  list(TRANSFORM ARGN PREPEND -D OUTPUT_VARIABLE definitions)
  string(MAKE_C_IDENTIFIER "${subcommand} ${name}" folder)
  add_test(NAME "${subcommand}: ${name}"
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:memprof_program> -DSUBCOMMAND=${subcommand} -DCHECKS=${checks}
      -DSCRATCH=${scratch}/${folder} ${definitions} -P ${checks}/${script}.cmake)
  set_tests_properties("${subcommand}: ${name}" PROPERTIES LABELS tool SKIP_REGULAR_EXPRESSION "skipped: ")
endfunction()
function(analyze_add_check)
  tool_add_check(analyze ${ARGV})
endfunction()

analyze_add_check("the document's numbers come out" tables)
analyze_add_check("a real log without its end is read" real_log "LOG=${PROJECT_SOURCE_DIR}/../shared/data/tt_train/pr50909_partial.log")
analyze_add_check("JSON has the tables' numbers" json)
analyze_add_check("the picture comes as PNG and SVG" picture)
analyze_add_check("without gnuplot the tables still come" no_gnuplot)
analyze_add_check("a bad file costs no other file" one_bad_file)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=") # sanitizers need more address space than there is memory
  analyze_add_check("a file too large for the memory costs no other file" out_of_memory)
endif()
analyze_add_check("--help lists every option" help)
if(EXISTS /dev/full)
  analyze_add_check("tables that cannot be written are told" full_disk)
endif()
if(TARGET nano_gpt_program)
  analyze_add_check("a profile is read to the byte" profile EXAMPLE=$<TARGET_FILE:nano_gpt_program>)
endif()

# tool_refuses(<subcommand> <what> <regular expression for the line on stderr> <argument>...)
function(tool_refuses subcommand what expected)
  string(JOIN " " arguments ${ARGN})
  tool_add_check(${subcommand} "refuses ${what}" refuses "EXPECTED=${expected}" "ARGUMENTS=${arguments}")
endfunction()
function(analyze_refuses)
  tool_refuses(analyze ${ARGV})
endfunction()

set(log ${checks}/two_summaries.log)
analyze_refuses("no logs" "--logs is required")
analyze_refuses("an unknown option" "--hats" --logs ${log} --hats 3)
analyze_refuses("a size without a whole unit" "--device-memory: '12G' is no size: write bytes" --logs ${log} --device_memory 12G)
analyze_refuses("a negative size" "--model-size: '-5' is no size" --logs ${log} --model-size=-5)
analyze_refuses("a device without memory" "--device-memory: '0'" --logs ${log} --device-memory 0)
analyze_refuses("a missing log" "cannot read 'missing.log': No such file" --logs missing.log)
analyze_refuses("a directory" "cannot read '[.]': Is a directory" --logs .)
analyze_refuses("a log without a summary" "'text.log': no line looks like part of one" --logs text.log)
analyze_refuses("a summary without segments"
  "'header.log': line 2, \"=== Memory Usage Summary ===\", looks like part of one, but no segment" --logs header.log)
analyze_refuses("a profile that is cut off" "cannot read a profile from 'cut.json': it is cut off after 30 bytes" --logs cut.json)
analyze_refuses("other JSON" "'other.json': /format must be" --logs other.json)
analyze_refuses("a picture of another kind" "--output: 'picture.pdf' has to end in .png or .svg" --logs ${log} --visualize-peak --output picture.pdf)

# --- show, profile, report and trace ----------------------------------------------------------------------------------

find_program(PYTHON3 python3)
mark_as_advanced(PYTHON3)

if(TARGET rmm_trace)
  set(rmm "WRITER=$<TARGET_FILE:rmm_trace>" "LOG=${PROJECT_SOURCE_DIR}/examples/rmm_trace/sample.csv")
  tool_add_check(show "a trace and its profile say the same" show ${rmm})
  tool_add_check(show "a trace that is cut off is shown up to there" show_damaged ${rmm})
  tool_add_check(show "recordings may come through a pipe" show_pipe ${rmm})
  if(EXISTS /dev/full)
    tool_add_check(show "a summary that cannot be written is no success" show_full_disk ${rmm})
  endif()
  tool_add_check(trace "events come as text and as JSON lines" trace ${rmm})
  tool_add_check(analyze "a trace is read" analyze_trace ${rmm})
  tool_add_check(report "a page is made of a trace and of a profile" report ${rmm} "PYTHON=$<IF:$<BOOL:${PYTHON3}>,${PYTHON3},>")
  tool_add_check(report "a trace that is cut off gives no page" report_damaged ${rmm})
endif()
tool_refuses(show "a missing file" "cannot read .*missing.memtrace'.*No such file" missing.memtrace)
tool_refuses(show "another file" "cannot read a profile from 'text.log'" text.log)
tool_refuses(trace "what is no trace" "cannot read 'text.log': it is not a trace" text.log)
tool_refuses(profile "a file that is none" "cannot read a profile from 'text.log'" text.log -o out.json)
tool_refuses(profile "no output" "--output is required" text.log)
tool_refuses(report "a missing file" "cannot read 'missing.memtrace': No such file" missing.memtrace)
tool_refuses(report "a directory" "cannot read '[.]': Is a directory" . -o page.html)
tool_refuses(report "what is neither" "cannot read a profile from 'text.log'" text.log)
tool_refuses(report "a profile that is cut off" "cannot read a profile from 'cut.json': it is cut off after 30 bytes" cut.json)
tool_refuses(report "no file" "FILE is required")

# --- estimate and fit -------------------------------------------------------------------------------------------------

set(estimator_data ${PROJECT_SOURCE_DIR}/../shared/data/estimator)
tool_add_check(estimate "the original's text and JSON come out" estimate_original "DATA=${estimator_data}")
tool_add_check(estimate "sizes come from files too" estimate_configs "REAL=${estimator_data}/run_20260225_143607.run_config.json")
tool_add_check(estimate "a step is written as text, JSON and a profile" estimate_step)
tool_add_check(estimate "pictures come as PNG" estimate_pictures)
tool_add_check(estimate "without gnuplot the tables still come" estimate_no_gnuplot)
tool_add_check(estimate "one real step is measured by stage" estimate_real_step)
tool_add_check(fit "the largest batch and the longest sequence are confirmed by runs" fit)

tool_add_check(estimate "--help lists every option" options "EXPECTED=--batch-size --seq-len --d-model --n-heads --layers --base-vocab-size \
--num-special-tokens --run-config --config --top-k --plot-dir --json-out --train-step-profile --profile-device --profile-bf16 --profile-lr \
--profile-seed --step --dtype --gradient-dtype --state-dtype --master-weights --optimizer --attention --recompute --torch --micro-batches \
--tensor-parallel --pipeline-parallel --pipeline-stage --data-parallel --zero --device --profile-out")
tool_add_check(fit "--help lists every option" options
  "EXPECTED=--device --longest-sequence --json-out --config --run-config --seq-len --batch-size --dtype --optimizer --attention")

tool_refuses(estimate "heads that do not divide the width" "n_heads 7 does not divide d_model 768" --n-heads 7)
tool_refuses(estimate "a size of zero" "batch_size is 0, but must be at least 1" --batch-size 0)
tool_refuses(estimate "a negative size" "layers is -3, but must be at least 1" --layers=-3)
tool_refuses(estimate "bytes beyond 63 bits" "does not fit 63 bits" --batch-size 9223372036854775807)
tool_refuses(estimate "a missing config" "cannot read 'missing.json': No such file" --run-config missing.json)
tool_refuses(estimate "an unknown decoder" "no decoder is called 'gpt5'. known are gpt2-124m" --config gpt5)
tool_refuses(estimate "a decoder and a file" "excludes" --config llama-7b --run-config other.json)
tool_refuses(estimate "an unknown key in a config" "/model/d_modle means nothing here. known are name d_model" --run-config misspelt.json)
tool_refuses(estimate "a config that is cut off" "cannot read a decoder's dimensions from 'cut.json': it is cut off after 30 bytes"
  --run-config cut.json)
tool_refuses(estimate "parts that do not divide the heads" "tensor_parallel 5 does not divide heads 12" --config gpt2-124m --step --tensor-parallel 5)
tool_refuses(estimate "an unknown optimizer" "--optimizer" --step --optimizer lion)
tool_refuses(estimate "an unknown device" "there is no device preset 'abacus'" --step --device abacus)
tool_refuses(estimate "a step on CUDA that is not there" "Requested --profile-device cuda, but CUDA is unavailable" --layers 1
  --train-step-profile --profile-device cuda)
tool_refuses(fit "no device" "--device is required")
tool_refuses(fit "a device without a capacity" "the device has no capacity" --device 0)
tool_refuses(fit "an unknown decoder" "no decoder is called 'gpt5'" --device 80GB --config gpt5)
