#pragma once

#include <nano_gpt/corpus.hpp>
#include <nano_gpt/element.hpp>
#include <nano_gpt/options.hpp>

#include <memprof/trace/dtype.hpp>

namespace nano_gpt {

/// Trains a model of elements T as `options` say and prints how that went. There are two of this function: train.cpp profiles
/// the memory of what train_plain.cpp merely does, in the capture that its caller has begun, and ends that.
template <class T>
void train(const options& options, const corpus& corpus);

/// The same with the element type that the options name; where it can only be counted, float stands in for it.
inline void train(const options& options, const corpus& corpus) {
  switch (options.dtype) {
    case memprof::dtype::bfloat16: return train<bf16>(options, corpus);
    case memprof::dtype::float16: return train<fp16>(options, corpus);
    default: return train<float>(options, corpus);
  }
}

}  // namespace nano_gpt
