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

# merge HEADER: the header on stdout, every <memprof/...> in it replaced by its text at the first place it is included; the names
# of the merged headers go to the file $merged.
merge() {
  awk -v root=include/ -v start="$1" -v merged="$merged" '
    function stop(what) { print "single_header.sh: " what > "/dev/stderr"; failed = 1; exit 1 }
    function copy(name, conditional,   path, line, target, depth, blank) {
      path = root name
      state[name] = conditional ? "conditional" : "always"
      print name > merged
      print "// ---- <" name ">"
      depth = 0
      blank = 1 # no empty lines at the start
      while ((status = (getline line < path)) > 0) {
        if (line ~ /^#pragma once/) continue
        if (line ~ /^[ \t]*#[ \t]*if/) depth++
        if (line ~ /^[ \t]*#[ \t]*endif/) depth--
        if (line ~ /^[ \t]*#[ \t]*include[ \t]*<memprof\//) {
          target = line
          sub(/^[^<]*</, "", target); sub(/>.*/, "", target)
          if (!(target in state)) copy(target, conditional || depth > 0)
          else if (state[target] == "conditional")
            stop(path ": <" target "> was merged inside an #if; include it before that #if as well")
          continue
        }
        if (line == "" && blank) continue
        blank = line == ""
        print line
      }
      if (status < 0) stop("cannot read " path)
      close(path)
    }
    BEGIN { copy(start, 0); exit failed }'
}

merged=$(mktemp)
rm -rf "$output/memprof"
mkdir -p "$output/memprof"
{
  echo "// memprof in one header, written by ./dev single-header. Do not edit: change the files under include/."
  sed 's|^|// |' LICENSE | sed 's| *$||'
  echo "#pragma once"
  echo
  merge memprof/memprof.hpp
} >"$output/memprof/memprof.hpp"

while read -r header; do
  ! grep -qxF "$header" "$merged" || continue
  mkdir -p "$output/$(dirname "$header")"
  awk -v merged="$merged" '
    BEGIN { while ((getline name < merged) > 0) in_umbrella[name] = 1 }
    /^[ \t]*#[ \t]*include[ \t]*<memprof\// {
      name = $0
      sub(/^[^<]*</, "", name); sub(/>.*/, "", name)
      if (name in in_umbrella) {
        if (!included++) print "#include <memprof/memprof.hpp>"
        next
      }
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
