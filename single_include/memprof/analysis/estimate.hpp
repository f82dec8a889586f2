#pragma once

#include <memprof/memprof.hpp>

#include <memprof/analysis/estimate/decoder_model.hpp>
#include <memprof/analysis/estimate/decoder_shape.hpp>
#include <memprof/analysis/estimate/fit_search.hpp>
#include <memprof/analysis/estimate/training_setup.hpp>
#include <memprof/analysis/estimate/training_step.hpp>

/// @file
/// What a decoder takes, before there is one: `estimate_shape` for what a forward pass keeps, in closed form,
/// `estimate_training_step` for the peak of a step, by phase, operation and category, and `find_fit` for the largest step that a
/// device has room for.
