#pragma once

// What a backend that simulates a device has.
#include <cstddef>
#include <cstdint>

inline memprof::extend::event_sink sink;
inline const void* address;
inline const void* other;
