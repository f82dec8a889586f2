// expected: trace/event.hpp:1: include <memprof/config.hpp>, which says what MEMPROF_ABI is
#pragma once

namespace memprof::inline MEMPROF_ABI {}
