#include <memprof/profile/json.hpp>

int main() { return memprof::to_json(memprof::profile{}).at("format") == "memprof-profile" ? 0 : 1; }
