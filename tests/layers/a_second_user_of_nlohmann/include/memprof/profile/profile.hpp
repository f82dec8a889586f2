// expected: profile/profile.hpp:3: only profile/json.hpp may include <nlohmann/json.hpp>
#pragma once
#include <nlohmann/json.hpp>
