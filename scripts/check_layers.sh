#!/usr/bin/env bash
# scripts/check_layers.sh [DIRECTORY]: checks that the files of both houses, include/memprof/ and toolkit/, include only their own or
# lower layers (CONTRIBUTING.md has the order), that the library includes nothing of the toolkit, and that only the permitted files
# use external headers. Prints one line per fault; exit status 1 if there are any.
set -euo pipefail
cd "${1:-"$(dirname "$0")/.."}"

houses=()
for house in include/memprof toolkit; do
  if [[ -d $house ]]; then houses+=("$house"); fi
done
find "${houses[@]}" -name '*.hpp' -o -name '*.cpp' | LC_ALL=C sort | xargs awk '
  BEGIN {
    count = split("detail trace ledger profile record backend report", layers, " ")
    for (i = 1; i <= count; i++) rank[layers[i]] = i - 1
    count = split("format symbols analysis estimate page", rooms, " ")
    for (i = 1; i <= count; i++) rank["toolkit/" rooms[i]] = rank["report"] + i
    # The only files that may include a third-party library. Of the library: json.hpp may have parts named json_*.hpp. Of the toolkit:
    # sources, and headers that have the library in their name or are below its own folder.
    owner["nlohmann"] = "profile/json.hpp"
    owner_pattern["nlohmann"] = "^include/memprof/profile/(device_)?json(_[a-z_]+)?[.]hpp$|^toolkit/.*(json[a-z_]*[.]hpp|[.]cpp)$"
    owner["boost"] = "no header"; owner_pattern["boost"] = "^$"
    owner["catch2"] = "check_catch2.hpp"; owner_pattern["catch2"] = "^include/memprof/check_catch2[.]hpp$"
    owner["gtest"] = "check_gtest.hpp"; owner_pattern["gtest"] = "^include/memprof/check_gtest[.]hpp$"
    owner["toml++"] = "record/session_toml.hpp"; owner_pattern["toml++"] = "^include/memprof/record/session_toml[.]hpp$"
    owner["protozero"] = "format/xla/message.hpp"; owner_pattern["protozero"] = "^toolkit/format/xla/message[.](hpp|cpp)$"
    owner["cuda"] = "backend/cuda_memory_resource.hpp"; owner_pattern["cuda"] = "^include/memprof/backend/cuda_memory_resource[.]hpp$"
    split("torch ATen c10 caffe2", names, " ")
    for (i in names) {
      owner[names[i]] = "backend/torch.hpp"
      owner_pattern[names[i]] = "^include/memprof/backend/torch(_[a-z_]+|(/[a-z_]+)+)?[.]hpp$"
    }
    # Sources write through event_sink only; these are internals of the profiler.
    inside = "^record/(registry|session|capture_state|start_recording|drain)[.]hpp$"
    # Headers that would slow down every unit of a user.
    heavy["iostream"] = heavy["chrono"] = heavy["functional"] = heavy["thread"] = heavy["regex"] = 1
  }
  function fault(what) { print FILENAME ":" FNR ": " what; faults++ }
  function folder_of(path) { return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "" }
  # Of a file below memprof/: "trace", or "toolkit/format".
  function layer_of(path) {
    return path ~ /^toolkit\// ? "toolkit/" folder_of(substr(path, length("toolkit/") + 1)) : folder_of(path)
  }

  FNR == 1 {
    if (has_namespace && !has_include) print last ":1: include <memprof/config.hpp>, which says what MEMPROF_ABI is"
    faults += has_namespace && !has_include
    last = FILENAME
    own = FILENAME
    sub(/^include\/memprof\//, "", own)
    has_include = own == "version.hpp"
    has_namespace = 0
    from = layer_of(own)
    in_toolkit = from ~ /^toolkit/
    if (from != "" && !(from in rank)) fault("the folder " from "/ is in no layer")
    if (!in_toolkit && own ~ /[.]cpp$/) fault("the library is header-only")
  }
  /^namespace memprof::inline/ { has_namespace = 1 }
  /^#include <memprof\// { has_include = 1 }
  /^namespace memprof/ && !/^namespace memprof::(abi_1|inline MEMPROF_ABI)/ {
    fault("write namespace memprof::inline MEMPROF_ABI: all code but the registry carries its version")
  }
  own ~ /^backend\/torch/ && /abi_1|process_registry/ { fault("it writes through event_sink, not into the registry") }
  /^[ \t]*#[ \t]*include[ \t]*"/ { fault("write #include <memprof/...>, not quotes"); next }
  /^[ \t]*#[ \t]*include[ \t]*</ {
    name = $0
    sub(/^[^<]*</, "", name); sub(/>.*/, "", name)
    top = folder_of(name)

    if (top in owner && FILENAME !~ owner_pattern[top]) fault("only " owner[top] " may include <" name ">")
    if ((from == "trace" || from == "detail") && name in heavy) fault(from "/ may not include <" name ">: it costs every user")
    if (top != "memprof") next

    target = substr(name, length("memprof/") + 1)
    to = layer_of(target)
    if (!in_toolkit && to ~ /^toolkit/) { fault("the library may not include the toolkit: <" name ">"); next }
    if (from == "") next
    if (target == "memprof.hpp") { fault("the umbrella is for users; include the header that is meant"); next }
    if (own ~ /^backend\/torch/ && target ~ inside) fault("it writes through event_sink: it may not include " target)
    if (to == "") next # config.hpp and version.hpp
    if (!(to in rank)) { fault("the folder " to "/ is in no layer"); next }
    if (rank[to] > rank[from]) fault(from "/ (layer " rank[from] ") may not include " to "/ (layer " rank[to] ")")
    if (rank[from] > rank["backend"] && (to == "record" || to == "backend"))
      fault(from "/ reads traces and profiles: it may not include " to "/ (layer " rank[to] ")")
  }
  END {
    if (has_namespace && !has_include) print last ":1: include <memprof/config.hpp>, which says what MEMPROF_ABI is"
    exit faults + (has_namespace && !has_include) > 0
  }'
