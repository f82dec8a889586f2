// expected: toolkit/page/html.hpp:3: toolkit/page/ reads traces and profiles
#pragma once
#include <memprof/record/capture.hpp>
