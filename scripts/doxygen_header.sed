# Makes a header readable for Doxygen: removes the inline namespaces, which users do not write.
s/::inline MEMPROF_ABI//
s/inline namespace \(enabled\|disabled\) {/extern "C" {/
