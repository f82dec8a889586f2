#!/usr/bin/env bash
# count.sh COMPILER NAME ARCHITECTURE INCLUDE_FOLDER [--update] [FLAG...]
#
# Counts the instructions per event of the hot path under callgrind and compares them with expected.txt, which holds for one
# compiler and architecture (NAME, ARCHITECTURE). Status 77: they are others here, or there is no valgrind. --update writes the
# file anew; FLAGs go to the compiler. CASES, a variable, chooses some of the cases.
set -euo pipefail
compiler=$1 name=$2 architecture=$3 include=$4
shift 4
update=no
if [[ ${1:-} == --update ]]; then
  update=yes
  shift
fi
sources=$(dirname "${BASH_SOURCE[0]}")
expected=$sources/expected.txt
margin=1.10
export LC_ALL=C

skip() { echo "skipped: $*"; exit 77; }
command -v valgrind >/dev/null || skip "no valgrind (Debian: valgrind)"
if [[ $update == no ]]; then
  stored="$(sed -n 's/^compiler //p' "$expected") on $(sed -n 's/^architecture //p' "$expected")"
  [[ $stored == "$name on $architecture" ]] || skip "the stored counts are for $stored, this is $name on $architecture"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$compiler" -std=c++20 -O2 -DNDEBUG -pthread -I"$include" "$sources/hot_path.cpp" -o "$work/hot_path" "$@"

# instructions CASE COUNT
instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$work/hot_path" "$1" "$2" 2>&1 |
    sed -n 's/^==.*Collected : \([0-9]*\).*/\1/p'
}

# The difference of two lengths: what starting, beginning and ending cost is not in it.
per_event() {
  local shorter longer
  shorter=$(instructions "$1" 51200)
  longer=$(instructions "$1" 102400)
  awk -v a="$shorter" -v b="$longer" 'BEGIN { if (a == "" || b == "") exit 1; printf "%.1f", (b - a) / 51200 }'
}

minus() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", a - b }'; }

{
  for case in ${CASES:-record whole_road no_capture operation operation_by_name}; do
    echo "$case $(per_event "$case")"
  done
  [[ -n ${CASES:-} ]] || echo "hooks_without_capture $(minus "$(per_event new_and_delete)" "$(per_event malloc_and_free)")"
} >"$work/counted"

if [[ $update == yes ]]; then
  {
    echo "# Instructions per event (per enter and exit for operations) that ./count.sh counted under callgrind. A test fails when a"
    echo "# count exceeds its number by more than a tenth. To accept new numbers: cmake --build build/dev --target update_instructions"
    echo "compiler $name"
    echo "architecture $architecture"
    cat "$work/counted"
  } >"$expected"
  cat "$expected"
  exit
fi

awk -v margin="$margin" '
  NR == FNR { if (!/^#/) stored[$1] = $2; next }
  !($1 in stored) { print $1 ": no stored number"; failed = 1; next }
  {
    # One instruction of grace where a tenth is less than that.
    limit = stored[$1] * margin
    if (limit < stored[$1] + 1) limit = stored[$1] + 1
    verdict = $2 > limit ? "TOO MANY" : $2 < stored[$1] / margin ? "fewer: store the new number" : "ok"
    printf "%-24s %8.1f instructions, stored %8.1f, at most %8.1f  %s\n", $1 ":", $2, stored[$1], limit, verdict
    if ($2 > limit) failed = 1
  }
  END {
    if (failed) print "The hot path swelled. If that is meant: cmake --build build/dev --target update_instructions, and commit expected.txt"
    exit failed
  }' "$expected" "$work/counted"
