#pragma once

#include <cstdint>
#include <string>

// What two_strings.cpp calls of a file that was compiled with the other std::string of libstdc++.

void record_with_other_string();

/// Bytes of the blocks that the file finds live in the space "cpu".
std::uint64_t live_bytes_with_other_string();

/// Adds `other_facts` rows of an index, half of it and `other_text`, more than one record of a trace holds.
void add_facts_with_other_string();
inline constexpr std::int64_t other_facts = 5'000;

/// Text of row `index`, short or long.
inline std::string other_text(std::int64_t index) { return "row " + std::to_string(index) + std::string(index % 100, '.'); }

/// Whether that file finds a profile; the capture goes on if it tries to end it.
bool has_profile_with_other_string();
void end_capture_with_other_string();
