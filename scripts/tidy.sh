#!/usr/bin/env bash
# Runs clang-tidy on every header of include/ and toolkit/, and on every source of toolkit/: in one unit each, so that what they
# include is parsed once. clang's analyzer takes an included .cpp for part of the unit. Headers based on libtorch are included only if
# Torch_DIR is set, those based on CUDA's never.
set -euo pipefail
cd "$(dirname "$0")/.."
units=$(mktemp -d)
links=$(mktemp -d)  # has memprof/toolkit, so that the headers of the toolkit are <memprof/toolkit/...>
trap 'rm -rf "$units" "$links"' EXIT
mkdir "$links/memprof"
ln -s "$PWD/toolkit" "$links/memprof/toolkit"

torch_includes=()
without='^memprof/\(backend/\(torch\|cuda_memory_resource\|nvtx_counters\)\|torch_implementation\)'
if [[ -n ${Torch_DIR:-} ]]; then
  include=$(cd "$Torch_DIR/../../../include" && pwd)
  torch_includes=(-isystem "$include" -isystem "$include/torch/csrc/api/include")
  without='^memprof/backend/\(torch_cuda\|cuda_memory_resource\|nvtx_counters\)'  # needs the CUDA toolkit's headers as well
fi
{ (cd include && find memprof -name '*.hpp'); find toolkit -name '*.hpp' | sed 's|^|memprof/|'; } | grep -v "$without" | LC_ALL=C sort |
  sed 's|.*|#include <&>|' >"$units/headers.cpp"
find toolkit -name '*.cpp' | LC_ALL=C sort | sed "s|.*|#include \"$PWD/&\"|" >"$units/sources.cpp"
status=0
for unit in headers sources; do
  clang-tidy --quiet --config-file=.clang-tidy --checks=-bugprone-suspicious-include "$units/$unit.cpp" -- \
    -std=c++20 -Iinclude -I"$links" "${torch_includes[@]}" 2>/dev/null || status=1
done
exit "$status"
