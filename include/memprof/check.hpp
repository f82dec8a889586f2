#pragma once

/// @file
/// For tests: whether a profile keeps a limit. Not part of the umbrella, since programs that only record do not need it.
/// <memprof/check_catch2.hpp> and <memprof/check_gtest.hpp> have matchers.

#include <memprof/report/check.hpp>
