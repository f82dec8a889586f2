// expected: trace/event.hpp:4: write namespace memprof::inline MEMPROF_ABI: all code but the registry carries its version
#pragma once

namespace memprof::detail {}
