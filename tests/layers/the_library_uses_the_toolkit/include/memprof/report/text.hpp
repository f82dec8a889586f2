// expected: report/text.hpp:3: the library may not include the toolkit: <memprof/toolkit/format/gzip.hpp>
#pragma once
#include <memprof/toolkit/format/gzip.hpp>
