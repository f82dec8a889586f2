// expected: toolkit/format/rmm/log.cpp:2: toolkit/format/ .layer 7. may not include toolkit/analysis/ .layer 9.
#include <memprof/toolkit/analysis/waterfall.hpp>
