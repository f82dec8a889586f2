#!/usr/bin/env bash
# release.sh [--tag]: checks that this commit can be released and creates out/release/: the archive, the single header, checksums.
# With --tag, also creates the annotated tag v<version>. Nothing is pushed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
fail() { printf 'release: %s\n' "$*" >&2; exit 1; }

version=$(sed -n 's/^#define MEMPROF_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' include/memprof/version.hpp | paste -sd.)
[[ -z $(git status --porcelain) ]] || fail "the tree has changes that are not committed"
grep -q "^## \[$version\] - [0-9-]*$" CHANGELOG.md || fail "CHANGELOG.md has no section \"## [$version] - <date>\""
grep -q "\"version\": \"$version\"" packaging/vcpkg/ports/memprof/vcpkg.json || fail "packaging/vcpkg/ports/memprof/vcpkg.json has another version"
minor=${version%.*}
others=$(grep -nE 'find_package\(memprof [0-9]|memprof/[0-9]+\.[0-9]' README.md docs/install.md | grep -vE "find_package\(memprof ${minor/./\\.}[ )]|memprof/${version//./\\.}\"" || true)
[[ -z $others ]] || fail "these lines name another version than $version:"$'\n'"$others"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "the tag v$version is there already"
scripts/single_header.py --check || exit 1

rm -rf out/release
mkdir -p out/release
git archive --prefix="memprof-$version/" --output="out/release/memprof-$version.tar.gz" HEAD
cp single_include/memprof/memprof.hpp "out/release/memprof-$version.hpp"
(cd out/release && sha256sum -- * >SHA256SUMS)
[[ ${1:-} != --tag ]] || git tag --annotate "v$version" --message "memprof $version"
printf 'out/release/:\n'
cat out/release/SHA256SUMS
printf '%s\n' "Before you publish: ./dev lint, ./dev test --torch --packages all, ./dev bench; then push the tag and upload the files."
