#!/usr/bin/env bash
# clang-tidy over every header of include/, in one unit so that the standard headers are parsed once.
set -euo pipefail
cd "$(dirname "$0")/.."
unit=$(mktemp --suffix=.cpp)
trap 'rm -f "$unit"' EXIT
(cd include && find memprof -name '*.hpp' | LC_ALL=C sort | sed 's|.*|#include <&>|') >"$unit"
clang-tidy --quiet --config-file=.clang-tidy "$unit" -- -std=c++20 -Iinclude 2>/dev/null
