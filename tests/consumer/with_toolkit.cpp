#include <memprof/toolkit/page/base64.hpp>
#include <memprof/toolkit/page/html.hpp>

#include <cstdio>

// A header of the toolkit, and a function that is compiled in it.
int main() {
  memprof::write_html(memprof::profile{}, "with_toolkit.html");
  return std::remove("with_toolkit.html") == 0 && memprof::detail::base64("memprof") == "bWVtcHJvZg==" ? 0 : 1;
}
