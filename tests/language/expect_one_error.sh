#!/bin/sh
# expect_one_error.sh COMPILER FOLDER: as C++17, each header of the folder ends with one #error and the file that is not there.
# version.hpp has only numbers, for any language.
status=0
cd "$2" || exit 1
for header in $(find memprof -name '*.hpp' ! -path memprof/version.hpp); do
  messages=$(echo "#include <$header>" | "$1" -std=c++17 -fsyntax-only -I. -x c++ - 2>&1 | grep 'error:')
  if [ "$(echo "$messages" | grep -c 'memprof needs C++20')" -ne 1 ] || [ "$(echo "$messages" | wc -l)" -ne 2 ]; then
    printf '%s:\n%s\n' "$header" "$messages"
    status=1
  fi
done
exit $status
