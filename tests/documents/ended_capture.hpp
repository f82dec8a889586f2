#pragma once

// A capture that has ended.
inline auto capture = memprof::begin_capture();
