#!/usr/bin/env bash
# check.sh CONAN FOLDER [OPTION...]: creates the package in a cache of its own under FOLDER, with dependencies from the system
# and no remote, and runs its test.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
conan=$1 out=$2
shift 2
rm -rf "$out"
mkdir -p "$out"
export CONAN_HOME=$out/home
"$conan" profile detect >/dev/null 2>&1
for recipe in "$here"/system/*; do "$conan" create "$recipe" --no-remote >/dev/null 2>&1; done
"$conan" create "$here/../.." --no-remote --settings compiler.cppstd=20 --settings build_type=Debug "$@" \
  --conf "tools.cmake.cmake_layout:test_folder=$out/test" --conf tools.cmake.cmaketoolchain:user_presets=
