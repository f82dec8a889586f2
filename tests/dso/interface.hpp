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
using no_dispatch_plugin_function = void();

// What is built with another version of memprof, 9.8.7: its functions by their names there.
DSO_TEST_VISIBLE void other_version_allocate(std::size_t bytes);  ///< as `library_allocate`
DSO_TEST_VISIBLE void other_version_snapshot(const char* name);
DSO_TEST_VISIBLE void other_version_begin_capture();
DSO_TEST_VISIBLE void other_version_end_capture();
/// Peak of the space "dso" in its current profile; -1 if it has no such profile.
DSO_TEST_VISIBLE long long other_version_peak();
DSO_TEST_VISIBLE const char* other_version_of_memprof();
