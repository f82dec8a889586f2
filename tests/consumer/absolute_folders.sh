#!/usr/bin/env bash
# absolute_folders.sh CMAKE COMPILER SOURCE VERSION: installs into absolute folders with a space in their names, as Nix and Guix
# have them, finds the package there, and compiles with pkg-config where that is. Outside the source tree, which CMake requires.
set -euo pipefail
cmake=$1 compiler=$2 source=$3 version=$4
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
folder="$out/a folder"
"$cmake" -S "$source" -B "$out/build" -DCMAKE_CXX_COMPILER="$compiler" -DMEMPROF_DEVELOPMENT=OFF -DMEMPROF_TOOLS=OFF \
  -DCMAKE_INSTALL_PREFIX="$folder/prefix" -DCMAKE_INSTALL_INCLUDEDIR="$folder/headers" -DCMAKE_INSTALL_DATAROOTDIR="$folder/data"
"$cmake" --install "$out/build" >"$out/log"
[[ ! -e $folder/prefix ]] || { echo "something went to the prefix"; exit 1; }
"$cmake" -S "$source/tests/consumer/find_package" -B "$out/consumer" -DCMAKE_CXX_COMPILER="$compiler" \
  -Dmemprof_DIR="$folder/data/memprof" -DWANTED_VERSION="$version" -DPROGRAM=marks_only
"$cmake" --build "$out/consumer"
"$out/consumer/consumer"
if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH="$folder/data/pkgconfig"
  eval "'$compiler' -std=c++20 '$source/tests/consumer/marks_only.cpp' -o '$out/program' $(pkg-config --cflags --libs memprof) \
    $(pkg-config --variable=executable_ldflags memprof)"
  "$out/program"
fi
