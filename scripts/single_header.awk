# awk -v merged=FILE -f scripts/single_header.awk: the umbrella on stdout with every header it reaches in place of its #include;
# the names of the merged headers go to the file. Run in include/.
#
# A header that every configuration includes comes before the first that includes it, even where that one asks under an #if: so no
# later header finds it merged into a branch that was not taken. One that only some configuration includes stays under its #if.

function stop(what) { print "single_header: " what > "/dev/stderr"; exit 1 }

# The headers a header includes, with the conditions they stand under ("" for none).
function read_header(name,   line, depth, i, count, text) {
  if (name in line_count) return
  depth = 0
  while ((status = (getline line < name)) > 0) {
    count++
    lines[name, count] = line
    if (line ~ /^[ \t]*#[ \t]*if/) condition[++depth] = line
    else if (line ~ /^[ \t]*#[ \t]*el/) condition[depth] = condition[depth] " / " line
    else if (line ~ /^[ \t]*#[ \t]*endif/) depth--
    else if (line ~ /^[ \t]*#[ \t]*include[ \t]*<memprof\//) {
      sub(/^[^<]*</, "", line)
      sub(/>.*/, "", line)
      target[name, count] = line
      text = ""
      for (i = 1; i <= depth; i++) text = text condition[i] "\n"
      conditions[name, count] = text
    }
  }
  if (status < 0) stop("cannot read " name)
  close(name)
  line_count[name] = count
}

function mark_what_every_configuration_includes(name,   i) {
  if (name in everywhere) return
  everywhere[name] = 1
  read_header(name)
  for (i = 1; i <= line_count[name]; i++)
    if ((name, i) in target && conditions[name, i] == "") mark_what_every_configuration_includes(target[name, i])
}

function merge_what_must_come_before(name,   i) {
  read_header(name)
  for (i = 1; i <= line_count[name]; i++) {
    if (!((name, i) in target)) continue
    if (target[name, i] in everywhere) merge(target[name, i], "")
    else merge_what_must_come_before(target[name, i])
  }
}

function merge(name, under,   i, blank) {
  if (name in merged_under) {
    if (merged_under[name] != under) stop("<" name "> is included under different conditions, and never without one")
    return
  }
  merged_under[name] = under
  print name > merged
  if (under == "") merge_what_must_come_before(name)
  print "// ---- <" name ">"
  blank = 1 # no empty lines at the start
  for (i = 1; i <= line_count[name]; i++) {
    if ((name, i) in target) {
      if (!(target[name, i] in everywhere)) merge(target[name, i], under conditions[name, i])
    } else if (lines[name, i] !~ /^#pragma once/ && !(lines[name, i] == "" && blank)) {
      print lines[name, i]
      blank = lines[name, i] == ""
    }
  }
  if (!blank) print ""
}

BEGIN {
  mark_what_every_configuration_includes("memprof/memprof.hpp")
  merge("memprof/memprof.hpp", "")
}
