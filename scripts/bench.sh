#!/usr/bin/env bash
# scripts/bench.sh DIRECTORY OUTPUT [ARGUMENT...]: runs every benchmark of the directory with interleaved repetitions, and writes
# one JSON object with the results of each under its name. Arguments go to the benchmarks (--benchmark_filter=REGEX, ...).
set -euo pipefail
directory=$1 output=$2
shift 2

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
shopt -s nullglob
for program in "$directory"/bench_*; do
  [[ -f $program && -x $program ]] || continue
  name=${program##*/bench_}
  printf '== %s\n' "$name"
  "$program" --benchmark_enable_random_interleaving=true --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
    --benchmark_counters_tabular=true --benchmark_out="$results/$name.json" --benchmark_out_format=json "$@"
done

# A benchmark that the filter left empty wrote nothing.
separator='{'
{
  for result in "$results"/*.json; do
    [[ -s $result ]] || continue
    printf '%s\n"%s": ' "$separator" "$(basename "$result" .json)"
    cat "$result"
    separator=','
  done
  [[ $separator == ',' ]] || printf '{'
  printf '\n}\n'
} >"$output"
printf 'The results are in %s\n' "$output"
