#!/usr/bin/env bash
# check.sh BUILD FOLDER COMPILER PROGRAM.cpp: makes the packages of a build, unpacks them, and uses what is in them.
set -euo pipefail
build=$1 out=$2 compiler=$3 program=$4
rm -rf "$out"
mkdir -p "$out/root"
(cd "$build" && cpack -G DEB -B "$out")
for package in "$out"/*.deb; do
  dpkg-deb --info "$package"
  dpkg-deb --extract "$package" "$out/root"
done
[[ $(ls "$out"/*.deb | wc -l) == 3 ]] || { echo "three packages were expected" >&2; exit 1; }
grep -q 'libstdc++6' <<<"$(dpkg-deb --field "$out"/memprof_*.deb Depends)" || { echo "memprof names no libraries" >&2; exit 1; }
# files_of PACKAGE: what it installs.
files_of() { dpkg-deb --contents "$out/$1"_*.deb | grep -v '^d'; }
toolkit='(include/memprof/toolkit|share/memprof/(toolkit|memprof-toolkit\.cmake$))'
if files_of libmemprof-dev | grep -vE ' \./usr/(include/memprof|share/(memprof|pkgconfig|doc/libmemprof-dev))/' ||
  files_of libmemprof-dev | grep -E " \./usr/$toolkit" ||
  files_of libmemprof-toolkit-dev | grep -vE " \./usr/($toolkit|share/doc/libmemprof-toolkit-dev/)"; then
  echo "a package of the library has files where none belong (above)" >&2
  exit 1
fi
for file in include/memprof/toolkit/format/gzip.hpp share/memprof/toolkit/format/gzip.cpp share/memprof/memprof-toolkit.cmake; do
  grep -q " \./usr/$file$" <<<"$(files_of libmemprof-toolkit-dev)" || { echo "libmemprof-toolkit-dev lacks $file" >&2; exit 1; }
done
for package in memprof libmemprof-dev libmemprof-toolkit-dev; do
  grep -q '^Copyright (c)' "$out/root/usr/share/doc/$package/copyright" || { echo "$package has no copyright file" >&2; exit 1; }
done
# Who publishes a package gives an address; all else that lintian calls an error is one.
if command -v lintian >/dev/null; then
  faults=$(lintian --allow-root --fail-on none --tag-display-limit 0 "$out"/*.deb | grep '^E:' | grep -v ' malformed-contact ' || true)
  [[ -z $faults ]] || { printf '%s\n' "$faults" >&2; exit 1; }
else
  echo "skipped: what lintian says, which is not there"
fi
"$compiler" -std=c++20 -I"$out/root/usr/include" "$program" -o "$out/program" -pthread -ldl
"$out/program"
"$out/root/usr/bin/memprof" --version
grep -q '^Peak ' <<<"$("$out/root/usr/bin/memprof" run -- /bin/ls / 2>&1)" || { echo "memprof run does not find its library" >&2; exit 1; }
for script in bash-completion/completions/memprof zsh/vendor-completions/_memprof; do
  grep -q waterfall "$out/root/usr/share/$script" || { echo "the package lacks $script" >&2; exit 1; }
done
manual=$(zcat "$out/root/usr/share/man/man1/memprof.1.gz")
"$out/root/usr/bin/memprof" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' | while read -r command; do
  grep -qx "\.B $command" <<<"$manual" || { echo "the manual lacks the command $command" >&2; exit 1; }
done
