# Sourced by ./dev. `require NAME... [-- NAME...]` installs what is missing. If a requirement before the dashes is still missing,
# it ends the program and names the packages; if one after the dashes is, it says what is skipped. If nothing is missing, it
# installs nothing and reads no package list.

# Each line: name, proof of presence (a command, a header in <>, or a pattern of paths), Debian packages to try in order.
requirements_table='
compiler      c++                                 g++
cmake         cmake                               cmake
ninja         ninja                               ninja-build
json          <nlohmann/json.hpp>                 nlohmann-json3-dev
pfr           <boost/pfr.hpp>                     libboost1.81-dev libboost-dev
catch2        <catch2/catch_test_macros.hpp>      catch2
gtest         <gmock/gmock.h>                     libgmock-dev
benchmark     <benchmark/benchmark.h>             libbenchmark-dev
valijson      <valijson/validator.hpp>            libvalijson-dev
cli11         <CLI/CLI.hpp>                       libcli11-dev
zstd          <zstd.h>                            libzstd-dev
toml          <toml++/toml.h>                     libtomlplusplus-dev
protozero     <protozero/varint.hpp>              libprotozero-dev
libdw         <elfutils/libdwfl.h>                libdw-dev
spdlog        <spdlog/spdlog.h>                   libspdlog-dev
gnuplot       gnuplot                             gnuplot-nox
zlib          <zlib.h>                            zlib1g-dev
npm           npm                                 npm
chromium      chromium                            chromium
firefox       /usr/bin/firefox*                   firefox-esr firefox
valgrind      valgrind                            valgrind
clang         clang++                             clang
clang-sanitizers  /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.asan-*.a  libclang-rt-14-dev libclang-rt-19-dev
clang-newest  /usr/bin/clang++-2[0-9]             clang-22 clang-21 clang-20
aarch64       aarch64-linux-gnu-g++               g++-aarch64-linux-gnu
qemu          qemu-aarch64                        qemu-user
catch2-aarch64  build/packages/arm64/usr/lib/libCatch2.a  libcatch2-dev:arm64
libc++        /usr/include/c++/v1/version         libc++-dev
libc++abi     /usr/lib/*/libc++abi.so             libc++abi-dev
flamegraph    /usr/share/perl5/Devel/NYTProf/flamegraph.pl  libdevel-nytprof-perl
heaptrack     heaptrack                           heaptrack
openmpi       mpirun                              openmpi-bin
tbb           <oneapi/tbb.h>                      libtbb-dev
faiss         <faiss/IndexIVFPQ.h>                libfaiss-dev
dlib          <dlib/dnn.h>                        libdlib-dev
libc-symbols  /usr/lib/debug/.build-id/*          libc6-dbg
libunwind     /usr/lib/*/libunwind.so.8           libunwind8
xz            xz                                  xz-utils
sqlite        sqlite3                             sqlite3
numpy         /usr/lib/python3/dist-packages/numpy/*  python3-numpy
node          npm                                 npm
python        python3                             python3
doxygen       doxygen                             doxygen
venv          python3                             python3-venv
clang-format  clang-format                        clang-format
clang-tidy    clang-tidy                          clang-tidy
'

# The folder for packages that are only unpacked, not installed.
unpacked=build/packages

# requirement NAME: sets proof and packages.
requirement() {
  local name
  while read -r name proof packages; do
    [[ $name != "$1" ]] || return 0
  done <<<"$requirements_table"
  fail "no such requirement: $1"
}

# absent NAME...: prints the names that are missing. One preprocessor run covers all headers.
absent() {
  local name proof packages unit=''
  for name in "$@"; do
    requirement "$name"
    if [[ $proof == \<* ]]; then
      unit+=$'#if !__has_include('$proof$')\nabsent '$name$'\n#endif\n'
    elif [[ $proof == */* ]]; then
      compgen -G "$proof" >/dev/null || echo "$name"
    else
      command -v "$proof" >/dev/null || echo "$name"
    fi
  done
  [[ -n $unit ]] || return 0
  if command -v c++ >/dev/null; then
    c++ -std=c++20 -isystem "$unpacked/usr/include" -x c++ -E -P - <<<"$unit" | sed -n 's/^absent //p'
  else
    sed -n 's/^absent //p' <<<"$unit"
  fi
}

require() {
  local needed=() wanted=() dashes=no name missing
  for name in "$@"; do
    if [[ $name == -- ]]; then dashes=yes
    elif [[ $dashes == no ]]; then needed+=("$name")
    else wanted+=("$name"); fi
  done

  missing=$(absent "${needed[@]}" "${wanted[@]}")
  [[ -n $missing ]] || return 0
  # Another command of ./dev may be installing.
  local lock
  mkdir -p build
  exec {lock}>build/packages.lock
  ! command -v flock >/dev/null || flock "$lock"
  missing=$(absent "${needed[@]}" "${wanted[@]}")
  [[ -z $missing ]] || install_with_apt $missing
  exec {lock}>&-
  missing=$(absent "${needed[@]}")
  [[ -z $missing ]] || fail "missing packages (Debian names): $(debian_names $missing); install them and run this again"
  for name in $(absent "${wanted[@]}"); do
    say "skipped: what needs $name (package $(debian_names "$name"))"
  done
}

debian_names() {
  local name proof packages names=()
  for name in "$@"; do
    requirement "$name"
    names+=("${packages%% *}")
  done
  echo "${names[*]}"
}

# --- apt --------------------------------------------------------------------------------------------------------------

as_root() { if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi; }

# Quiet on success. A failure does not end the program; what is still missing afterwards does.
apt_get() {
  local output
  output=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get "$@" 2>&1 </dev/null) || printf '%s\n' "$output" >&2
}

install_with_apt() {
  command -v apt-get >/dev/null || return 0
  [[ $(id -u) -eq 0 ]] || command -v sudo >/dev/null || return 0
  local name proof packages package version chosen=()
  say "installing with apt-get: $(debian_names "$@")"
  apt_get update
  for name in "$@"; do
    requirement "$name"
    if [[ $name == catch2 ]]; then
      version=$(catch2_3_version "$packages")
      chosen+=("$packages${version:+=$version}")
      continue
    elif [[ $name == valijson ]]; then
      unpack_package $packages
      continue
    elif [[ $name == catch2-aarch64 ]]; then
      unpack_for_aarch64 "${packages%:*}"
      continue
    fi
    for package in $packages; do
      if apt-cache show "$package" >/dev/null 2>&1; then
        chosen+=("$package")
        break
      fi
    done
  done
  [[ ${#chosen[@]} -eq 0 ]] || apt_get install -y --no-install-recommends "${chosen[@]}"
}

# A header-only library whose package has 400 MB of dependencies that are not needed here.
unpack_package() {
  local folder
  folder=$(mktemp -d)
  mkdir -p "$unpacked"
  (cd "$folder" && apt-get download -qq "$1" >/dev/null 2>&1) && dpkg-deb -x "$folder"/*.deb "$unpacked" || true
  rm -rf "$folder"
}

# unpack_for_aarch64 PACKAGE: unpacks its version 3, using separate package lists: the system's stay without a second
# architecture.
unpack_for_aarch64() {
  local folder version
  folder=$(mktemp -d)
  local options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::lists="$folder/lists"
    -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
  mkdir -p "$folder/lists/partial" "$unpacked/arm64"
  apt_get "${options[@]}" update
  version=$(catch2_3_version "$1" "${options[@]}")
  [[ -z $version ]] || (cd "$folder" && apt-get "${options[@]}" download -qq "$1=$version" >/dev/null 2>&1) &&
    dpkg-deb -x "$folder"/*.deb "$unpacked/arm64" 2>/dev/null || true
  as_root rm -rf "$folder"
}

# catch2_3_version PACKAGE [OPTION...]: Debian 12 has Catch2 2; version 3 is in the backports of the same release.
catch2_3_version() {
  local package=$1 version
  shift
  version=$(newest_3 "$@" madison "$package")
  if [[ -z $version ]] && enable_backports >&2; then
    apt_get "$@" update
    version=$(newest_3 "$@" madison "$package")
  fi
  echo "$version"
}
newest_3() { apt-cache "$@" | awk '$3 + 0 >= 3 { print $3; exit }'; }

# Adds the backports of this release beside the entry that serves the release itself: same mirror, same key.
enable_backports() {
  local codename uri key file
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [[ -n $codename ]] || return 1
  IFS=$'\t' read -r uri key < <(release_entry "$codename") || return 1
  file=/etc/apt/sources.list.d/$codename-backports.sources
  [[ -e $file ]] || say "adding $codename-backports to the sources of apt, from $uri"
  {
    printf 'Types: deb\nURIs: %s\nSuites: %s-backports\nComponents: main\n' "$uri" "$codename"
    [[ -z $key ]] || printf 'Signed-By: %s\n' "$key"
  } | as_root tee "$file" >/dev/null
}

# release_entry CODENAME: prints the address and key (may be empty) of the first source entry of that suite, in either format.
release_entry() {
  local codename=$1
  {
    find /etc/apt/sources.list.d -name '*.sources' -exec cat {} + -exec echo \; 2>/dev/null | awk -v suite="$codename" '
      function entry() {
        if ((" " suites " ") ~ (" " suite " ") && uri != "" && enabled != "no") { print uri "\t" key; found = 1; exit }
        suites = uri = key = enabled = ""
      }
      /^#/ { next }
      /^[ \t]*$/ { entry(); next }
      tolower($1) == "uris:" { uri = $2 }
      tolower($1) == "suites:" { $1 = ""; suites = substr($0, 2) }
      tolower($1) == "signed-by:" { key = $2 }
      tolower($1) == "enabled:" { enabled = tolower($2) }
      END { if (!found) entry() }'
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | awk -v suite="$codename" '
      $1 == "deb" {
        key = ""
        while ($2 ~ /^\[/ || (open && $2 !~ /^[a-z]+:/)) {
          open = 1
          if ($2 ~ /signed-by=/) { key = $2; sub(/.*signed-by=/, "", key); sub(/\].*/, "", key) }
          $2 = ""; $0 = $0
        }
        open = 0
        if ($3 == suite) { print $2 "\t" key; exit }
      }'
  } | head -n 1
}
