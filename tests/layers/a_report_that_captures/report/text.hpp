// expected: report/text.hpp:3: report/ reads profiles and events
#pragma once
#include <memprof/capture/snapshot.hpp>
