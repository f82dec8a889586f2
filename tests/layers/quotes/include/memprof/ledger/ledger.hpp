// expected: ledger/ledger.hpp:3: write #include <memprof/...>, not quotes
#pragma once
#include "../core/event.hpp"
