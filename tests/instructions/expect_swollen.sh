#!/usr/bin/env bash
# expect_swollen.sh COMMAND...: the count must fail, and must say that recording takes too many instructions.
set -uo pipefail
output=$(CASES=record "$@")
status=$?
echo "$output"
[[ $status -ne 77 ]] || exit 77
[[ $status -ne 0 ]] && grep -q '^record: .*TOO MANY' <<<"$output"
