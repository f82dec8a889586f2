// expected: backend/cpu.hpp:3: the umbrella is for users
#pragma once
#include <memprof/memprof.hpp>
