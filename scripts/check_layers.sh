#!/usr/bin/env bash
# scripts/check_layers.sh [DIRECTORY]: checks that headers include only their own or lower layers (CONTRIBUTING.md has the order),
# and that only the permitted layers use external headers. Prints one line per fault; exit status 1 if there are any.
set -euo pipefail
root=${1:-"$(dirname "$0")/../include/memprof"}
cd "$root"

find . -name '*.hpp' | sed 's|^\./||' | LC_ALL=C sort | xargs awk '
  BEGIN {
    count = split("detail trace ledger profile record backend format analysis report", layers, " ")
    for (i = 1; i <= count; i++) rank[layers[i]] = i - 1
    # The only headers that may include a third-party library; json.hpp may have parts named json_*.hpp,
  # and readers of foreign JSON are format/*_json.hpp.
    owner["nlohmann"] = "profile/json.hpp"; owner_pattern["nlohmann"] = "^(profile/json(_[a-z_]+)?|format/[a-z_]+_json)[.]hpp$"
    owner["boost"] = "no header"; owner_pattern["boost"] = "^$"
    owner["toml++"] = "record/session_toml.hpp"; owner_pattern["toml++"] = "^record/session_toml[.]hpp$"
    owner["protozero"] = "format/protobuf_reader.hpp"; owner_pattern["protozero"] = "^format/protobuf_reader[.]hpp$"
    split("torch ATen c10 caffe2", names, " ")
    for (i in names) {
      owner[names[i]] = "backend/torch.hpp"
      owner_pattern[names[i]] = "^backend/torch(_[a-z_]+|(/[a-z_]+)+)?[.]hpp$"
    }
    # Sources write through event_sink only; these are internals of the profiler.
    inside = "^record/(registry|session|capture_state|start_recording|drain)[.]hpp$"
    # Headers that would slow down every unit of a user.
    heavy["iostream"] = heavy["chrono"] = heavy["functional"] = heavy["thread"] = heavy["regex"] = 1
  }
  function fault(what) { print FILENAME ":" FNR ": " what; faults++ }
  function layer_of(path) { return path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "" }

  FNR == 1 {
    if (has_namespace && !has_include) print last ":1: include <memprof/config.hpp>, which says what MEMPROF_ABI is"
    faults += has_namespace && !has_include
    last = FILENAME
    has_include = FILENAME == "version.hpp"
    has_namespace = 0
    from = layer_of(FILENAME)
    if (from != "" && !(from in rank)) fault("the folder " from "/ is in no layer")
  }
  /^namespace memprof::inline/ { has_namespace = 1 }
  /^#include <memprof\// { has_include = 1 }
  /^namespace memprof/ && !/^namespace memprof::(abi_1|inline MEMPROF_ABI)/ {
    fault("write namespace memprof::inline MEMPROF_ABI: all code but the registry carries its version")
  }
  FILENAME ~ /^backend\/torch/ && /abi_1|process_registry/ { fault("it writes through event_sink, not into the registry") }
  /^[ \t]*#[ \t]*include[ \t]*"/ { fault("write #include <memprof/...>, not quotes"); next }
  /^[ \t]*#[ \t]*include[ \t]*</ {
    name = $0
    sub(/^[^<]*</, "", name); sub(/>.*/, "", name)
    top = layer_of(name)

    if (top in owner && FILENAME !~ owner_pattern[top]) fault("only " owner[top] " may include <" name ">")
    if ((from == "trace" || from == "detail") && name in heavy) fault(from "/ may not include <" name ">: it costs every user")
    if (top != "memprof" || from == "") next

    target = substr(name, length("memprof/") + 1)
    if (target == "memprof.hpp") { fault("the umbrella is for users; include the header that is meant"); next }
    if (FILENAME ~ /^backend\/torch/ && target ~ inside) fault("it writes through event_sink: it may not include " target)
    to = layer_of(target)
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
