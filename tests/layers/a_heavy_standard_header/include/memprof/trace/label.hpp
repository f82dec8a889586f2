// expected: trace/label.hpp:3: trace/ may not include <chrono>
#pragma once
#include <chrono>
