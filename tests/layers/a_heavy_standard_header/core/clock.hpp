// expected: core/clock.hpp:3: core/ may not include <chrono>
#pragma once
#include <chrono>
