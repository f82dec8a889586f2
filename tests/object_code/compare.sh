#!/usr/bin/env bash
# compare.sh COMPILER INCLUDE_FOLDER: the object code of guarded.cpp with MEMPROF_ENABLED=0 must be that of plain.cpp: the same
# instructions, relocations and definitions. Status 77: something to look into object files with is missing.
set -euo pipefail
compiler=$1 include=$2
sources=$(dirname "${BASH_SOURCE[0]}")
export LC_ALL=C

for tool in objdump nm; do
  command -v "$tool" >/dev/null || { echo "skipped: no $tool (Debian: binutils)"; exit 77; }
done

objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT

# compile NAME SOURCE FLAG...: writes what the object says into NAME.text and NAME.symbols.
compile() {
  local name=$1 source=$2
  shift 2
  "$compiler" -std=c++20 -O2 -I"$include" -c "$sources/$source" -o "$objects/$name.o" "$@"
  # Without the line that names the file.
  objdump --disassemble --reloc "$objects/$name.o" | sed 1,3d >"$objects/$name.text"
  nm --defined-only "$objects/$name.o" >"$objects/$name.symbols"
}

compile plain plain.cpp
compile compiled_out guarded.cpp -DMEMPROF_ENABLED=0
# Without what a program may compile once, which takes long and is not needed to see a difference.
compile enabled guarded.cpp -DMEMPROF_ENABLED=1 -DMEMPROF_SEPARATE_COMPILATION=1

grep -q '<train_step>:' "$objects/plain.text" || { echo "objdump shows no function train_step" >&2; exit 1; }
if cmp -s "$objects/plain.text" "$objects/enabled.text"; then
  echo "the comparison sees nothing: even with memprof enabled the code is the same" >&2
  exit 1
fi
for what in text symbols; do
  diff -u "$objects/plain.$what" "$objects/compiled_out.$what" || {
    echo "MEMPROF_ENABLED=0 leaves something behind (- plain, + guarded and compiled out)" >&2
    exit 1
  }
done
echo "$(grep -c '^ .*:' "$objects/plain.text") lines of disassembly are the same"
