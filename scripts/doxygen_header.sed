# A header as Doxygen understands it: without the inline namespaces, which are no part of what users write.
s/::inline MEMPROF_ABI//
s/inline namespace \(enabled\|disabled\) {/extern "C" {/
