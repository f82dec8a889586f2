// expected: trace/event.hpp:3: trace/ .layer 1. may not include ledger/ .layer 2.
#pragma once
#include <memprof/ledger/ledger.hpp>
