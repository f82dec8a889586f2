#!/bin/sh
# run.sh SOURCE FOLDER check|chromium|firefox [NANO_GPT]: installs what viewer/package-lock.json names into FOLDER and runs the check of the
# committed template, or the tests in that browser. Ends with 4, which ctest counts as skipped, where npm is not or cannot install.
set -eu
source=$1
folder=$2
what=$3

skip() {
  echo "skipped: $1"
  exit 4
}

command -v npm >/dev/null && command -v node >/dev/null || skip "the tests of the page need npm (the packages nodejs and npm)"
node -e 'process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)' || skip "the tests of the page need Node.js 18, this is $(node --version)"

mkdir -p "$folder"
for part in package.json package-lock.json tsconfig.json build.mjs src test; do
  rm -rf "${folder:?}/$part"
  cp -R "$source/viewer/$part" "$folder/$part"
done
cd "$folder"
if ! cmp -s package-lock.json installed.json; then
  npm ci --no-audit --no-fund --prefer-offline >install.log 2>&1 || {
    cat install.log
    [ -z "${CI:-}" ] || exit 1
    skip "npm could not install what the page is built with"
  }
  cp package-lock.json installed.json
fi

case $what in
  check)
    node_modules/.bin/tsc --noEmit
    node build.mjs --check --into "$source/toolkit/page"
    ;;
  chromium | firefox)
    MEMPROF_TEST_SCREENSHOTS=$folder/pages MEMPROF_TEST_NANO_GPT=${4:-} exec node test/run.mjs "$what"
    ;;
esac
