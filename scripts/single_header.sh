#!/usr/bin/env bash
# scripts/single_header.sh           writes single_include/ from include/
# scripts/single_header.sh --check   says what is not current there; exit status 1 if there is anything
#
# single_include/memprof/memprof.hpp is the umbrella with every header it reaches. A header that the umbrella does not reach
# (one includes it by choice) keeps its path there, and takes all the others from the single header.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

output=single_include
if [[ ${1:-} == --check ]]; then
  output=$(mktemp -d)
  trap 'rm -rf "$output"' EXIT
fi

merged=$(mktemp)
rm -rf "$output/memprof"
mkdir -p "$output/memprof"
{
  echo "// memprof in one header, written by ./dev single-header. Do not edit: change the files under include/."
  sed 's|^|// |' LICENSE | sed 's| *$||'
  echo "#pragma once"
  echo
  (cd include && awk -v merged="$merged" -f ../scripts/single_header.awk)
} >"$output/memprof/memprof.hpp"

while read -r header; do
  ! grep -qxF "$header" "$merged" || continue
  mkdir -p "$output/$(dirname "$header")"
  awk -v merged="$merged" '
    BEGIN { while ((getline name < merged) > 0) in_umbrella[name] = 1 }
    /^#pragma once/ { print; print "\n#include <memprof/memprof.hpp>"; next }
    /^[ \t]*#[ \t]*include[ \t]*<memprof\// {
      name = $0
      sub(/^[^<]*</, "", name); sub(/>.*/, "", name)
      if (name in in_umbrella) next
    }
    { print }' "include/$header" >"$output/$header"
done < <(cd include && find memprof -name '*.hpp' | sort)
rm -f "$merged"

if [[ ${1:-} == --check ]]; then
  diff -rq single_include/memprof "$output/memprof" || {
    echo "single_include/ is not current; run ./dev single-header" >&2
    exit 1
  }
fi
