#pragma once

#include <nano_gpt/corpus.hpp>
#include <nano_gpt/options.hpp>

namespace nano_gpt {

/// Trains a model as `options` say and prints how that went. There are two of this function: train.cpp profiles the memory of
/// what train_plain.cpp merely does.
void train(const options& options, const corpus& corpus);

}  // namespace nano_gpt
