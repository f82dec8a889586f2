#pragma once

// The text of a log.
#include <cstdint>
#include <cstdio>
#include <string>

inline std::string text;
