# awk -v folder=FOLDER -f scripts/snippets.awk DOCUMENT...: each fenced block of C++ of the documents as a file to compile, in
# FOLDER; prints their names. No block is left out. The rules:
#
# - The block's #include lines come first, after those of the blocks before it in the same document: a reader has seen them.
#   Nothing else of memprof is included, so a header that the text does not name is missed.
# - `<!-- snippet: NAME... -->` on the line before the block includes tests/documents/NAME.hpp next: what the text takes as given.
# - A line that is only `...` stands for code that is left out.
# - A block without a main function is the body of a function.

function fail(what) { print FILENAME ":" FNR ": " what > "/dev/stderr"; failed = 1; exit 1 }

function finish(   file, i, has_main) {
  file = FILENAME ":" first
  gsub(/[^A-Za-z0-9]/, "_", file)
  file = folder "/" file ".cpp"
  for (i = 1; i <= count; i++)
    if (body[i] ~ /^int main\(/) has_main = 1
  printf "" > file
  for (i = 1; i <= includes; i++) print include[i] > file
  for (i = 1; i in given; i++) print "#include <documents/" given[i] ".hpp>" > file
  if (!has_main) print "void snippet() {" > file
  printf "#line %d \"%s\"\n", first + 1, FILENAME > file
  for (i = 1; i <= count; i++) print body[i] > file
  if (!has_main) print "}" > file
  close(file)
  print file
}

FNR == 1 {
  if (inside) fail("a block before it has no end")
  includes = 0
}
/^[ \t]*```/ && !inside {
  if ($0 ~ /^ *``` *(c|C)(\+\+|xx|pp)/ && $0 != "```cpp") fail("write ```cpp at the start of the line, so that the block is compiled")
  inside = $0 == "```cpp" ? "cpp" : $0 ~ /```[ \t]*$/ ? "text" : "another language"
  first = FNR
  count = 0
  delete given
  if (before ~ /^<!-- snippet: .* -->$/) {
    if (inside != "cpp") fail("the snippet that is announced is not ```cpp")
    sub(/^<!-- snippet: */, "", before)
    sub(/ *-->$/, "", before)
    split(before, given, / +/)
  }
  next
}
/^[ \t]*```[ \t]*$/ && inside {
  if (inside == "cpp") finish()
  inside = ""
  next
}
inside == "cpp" {
  if ($0 ~ /^#include/) { include[++includes] = $0; body[++count] = "" }
  else body[++count] = $0 ~ /^[ \t]*\.\.\.$/ ? "" : $0
}
inside == "text" && /memprof::|^#include/ { fail("this looks like C++: write ```cpp, so that the block is compiled") }
{ before = $0 }
END { if (inside && !failed) { print "a block has no end" > "/dev/stderr"; exit 1 } }
