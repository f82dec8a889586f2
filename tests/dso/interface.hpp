#pragma once

#include <cstddef>

/// What the executable, the library and the plugin of these tests call of each other. Built with hidden visibility, so only this
/// is visible.
#define DSO_TEST_VISIBLE extern "C" [[gnu::visibility("default")]]

/// Allocates for good in the space "dso", within the operation "in library".
DSO_TEST_VISIBLE void library_allocate(std::size_t bytes);

/// The same in a library that was compiled with MEMPROF_ENABLED=0: none of it is recorded.
DSO_TEST_VISIBLE void disabled_library_allocate(std::size_t bytes);

// The plugin's functions are looked up by name.
using plugin_allocate_function = void(std::size_t bytes);
using plugin_begin_capture_function = void();
