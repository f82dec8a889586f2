// expected: core/event.hpp:3: core/ .layer 1. may not include ledger/ .layer 2.
#pragma once
#include <memprof/ledger/ledger.hpp>
