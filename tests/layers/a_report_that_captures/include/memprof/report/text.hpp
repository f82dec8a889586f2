// expected: report/text.hpp:3: report/ reads traces and profiles
#pragma once
#include <memprof/record/capture.hpp>
