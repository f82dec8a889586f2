#!/usr/bin/env bash
# scripts/estimate_table.sh PROGRAM           writes the table of docs/estimate.md, which PROGRAM (tests/estimate) prints
# scripts/estimate_table.sh --check PROGRAM   says whether it is current; exit status 1 if not, or if a row is off by more than 2 %
set -euo pipefail
check=no
if [[ ${1:-} == --check ]]; then
  check=yes
  shift
fi
[[ $# -eq 1 ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
document=$(dirname "$0")/../docs/estimate.md
table=$("$1")

# Replaces what is between the two comments.
written=$(awk -v table="$table" '
  /^<!-- table: / { print; print table; inside = 1; next }
  /^<!-- end of table -->/ { inside = 0 }
  !inside' "$document")
if [[ $check == yes ]]; then
  diff <(printf '%s\n' "$written") "$document" || { echo "run scripts/estimate_table.sh" >&2; exit 1; }
else
  printf '%s\n' "$written" >"$document"
fi
