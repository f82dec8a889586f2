#pragma once

#include <memprof/toolkit/estimate/decoder_model.hpp>
#include <memprof/toolkit/estimate/decoder_shape.hpp>
#include <memprof/toolkit/estimate/fit_search.hpp>
#include <memprof/toolkit/estimate/forward_estimate.hpp>
#include <memprof/toolkit/estimate/training_setup.hpp>
#include <memprof/toolkit/estimate/training_step.hpp>

/// @file
/// Estimates the memory of a decoder before it exists: `estimate_shape` gives what a forward pass keeps, in closed form,
/// `estimate_training_step` the peak of a step by phase, operation and category, and `find_fit` the largest step that fits a
/// device.
