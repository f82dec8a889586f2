# awk -v folder=FOLDER -f scripts/snippets.awk DOCUMENT...: writes each fenced block of C++ in the documents to FOLDER as a file to
# compile, and prints the file names. The rules:
#
# - The block's #include lines come first, after those of earlier blocks in the same document, which a reader has seen. Nothing
#   else of memprof is included, so that a header the text does not name is noticed.
# - `<!-- snippet: NAME... -->` on the line before the block includes tests/documents/NAME.hpp next: what the text takes as given.
# - A line with only `...` stands for omitted code.
# - A block without a main function becomes the body of a function. Each block is in its own namespace, so that those of a document
#   can be compiled as one unit, in order.
# - `<!-- program: NAME -->` on the line before the block says that the document shows its output, in blocks without a language
#   that follow, each after `<!-- output -->` (scripts/document_outputs.py). FOLDER/programs.cpp, programs_with_new_delete.cpp
#   and programs_with_torch.cpp contain all of them: a copy of or a link to the executable with such a name runs that program. Their
#   main takes no arguments and returns nothing.
# - `<!-- file: NAME -->` says that the block is a file of a project that is built and run by the commands in the document
#   (scripts/document_outputs.py).

function fail(what) { print FILENAME ":" FNR ": " what > "/dev/stderr"; failed = 1; exit 1 }

function finish(   file, name, i, has_main, kind) {
  name = FILENAME ":" first
  gsub(/[^A-Za-z0-9]/, "_", name)
  file = folder "/" name ".cpp"
  for (i = 1; i <= count; i++) {
    if (body[i] ~ /^int main\(/) has_main = 1
    if (program && body[i] ~ /^int main\([^)]/) fail("a program whose output is shown takes no arguments")
  }
  if (program && !has_main) fail("the program that is announced has no main function")
  printf "" > file
  for (i = 1; i <= includes; i++) {
    print include[i] > file
    if (include[i] ~ /new_delete/) kind = "_with_new_delete"
    if (include[i] ~ /memprof\/backend\/torch/) kind = "_with_torch"
  }
  for (i = 1; i in given; i++) print "#include <documents/" given[i] ".hpp>" > file
  printf "namespace in_%s {\n", name > file
  if (!has_main) print "void snippet() {" > file
  printf "#line %d \"%s\"\n", first + 1, FILENAME > file
  for (i = 1; i <= count; i++) {
    sub(/^int main\(\)/, "void run_program()", body[i])
    print body[i] > file
  }
  if (!has_main) print "}" > file
  print "}" > file
  close(file)
  print file
  if (!program) return
  if (program in programs) fail("there is another program '" program "'")
  programs[program]
  add_program(folder "/programs" kind ".cpp", file, name)
}

# The units of all programs, with a main function that runs the program it is named after.
function add_program(unit, file, name) {
  units[unit] = units[unit] "#include \"" file "\"\n"
  runs[unit] = runs[unit] "  if (name == \"" program "\") in_" name "::run_program();\n"
}

FNR == 1 {
  if (inside) fail("a block before it has no end")
  includes = 0
}
/^[ \t]*```/ && !inside {
  if ($0 ~ /^ *``` *(c|C)(\+\+|xx|pp)/ && $0 != "```cpp") fail("write ```cpp at the start of the line, so that the block is compiled")
  is_file = before ~ /^<!-- file: .* -->$/
  inside = $0 == "```cpp" && !is_file ? "cpp" : $0 ~ /```[ \t]*$/ ? "text" : "another language"
  first = FNR
  count = 0
  program = ""
  delete given
  if (before ~ /^<!-- (snippet|program): .* -->$/) {
    if (inside != "cpp") fail("the snippet that is announced is not ```cpp")
    is_program = before ~ /^<!-- program/
    sub(/^<!-- [a-z]*: */, "", before)
    sub(/ *-->$/, "", before)
    if (is_program) program = before
    else split(before, given, / +/)
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
inside == "text" && /memprof::|^#include/ { fail("this looks like C++: write ```cpp so that the block is compiled") }
{ before = $0 }
END {
  if (inside && !failed) { print "a block is not closed" > "/dev/stderr"; exit 1 }
  for (unit in units) {
    printf "%s#include <string_view>\n\nint main(int, char** arguments) {\n", units[unit] > unit
    print "  std::string_view name = arguments[0];" > unit
    print "  name.remove_prefix(name.rfind('/') + 1);" > unit
    printf "%s}\n", runs[unit] > unit
  }
}
