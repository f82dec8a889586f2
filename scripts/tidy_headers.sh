#!/usr/bin/env bash
# Runs clang-tidy on every header of include/, in one unit so that the standard headers are parsed once. Headers based on libtorch
# are included only if Torch_DIR is set.
set -euo pipefail
cd "$(dirname "$0")/.."
unit=$(mktemp --suffix=.cpp)
trap 'rm -f "$unit"' EXIT

torch_includes=()
without='^memprof/backend/torch'
if [[ -n ${Torch_DIR:-} ]]; then
  include=$(cd "$Torch_DIR/../../../include" && pwd)
  torch_includes=(-isystem "$include" -isystem "$include/torch/csrc/api/include")
  without='^memprof/backend/torch_cuda'  # needs the CUDA toolkit's headers as well
fi
(cd include && find memprof -name '*.hpp' | grep -v "$without" | LC_ALL=C sort | sed 's|.*|#include <&>|') >"$unit"
clang-tidy --quiet --config-file=.clang-tidy "$unit" -- -std=c++20 -Iinclude "${torch_includes[@]}" 2>/dev/null
