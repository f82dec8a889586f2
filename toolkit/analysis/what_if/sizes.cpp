#include <memprof/config.hpp>
#include <memprof/detail/error.hpp>
#include <memprof/report/text/quantity.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/what_if.hpp>
#include <memprof/toolkit/analysis/what_if/scenario.hpp>
#include <memprof/trace/category.hpp>
#include <memprof/trace/dtype.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// @file
/// Changes of the size of blocks: other element types, another batch.

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

/// Bytes of 1024 elements of a type that holds real numbers; nothing for other types and unknown ones.
std::optional<std::int64_t> bytes_of_1024(std::string_view name) {
  if (name == "fp64") return 8192;
  const std::optional<dtype> type = dtype_from_string(name);
  if (!type || *type == dtype::int32 || *type == dtype::boolean) return {};
  return tile_bytes(*type);
}

std::int64_t bytes_of_type(std::string_view name) {
  if (const std::optional<std::int64_t> bytes = bytes_of_1024(name)) return *bytes;
  raise("'" + std::string{name} +
        "' is not an element type whose size can be changed: give fp64, fp32, bf16, fp16, fp8, int8, bfp8 or bfp4");
}

/// How a change of type applies to each operation.
struct retyping_of_owner {
  std::vector<bool> operations;
  std::optional<std::int64_t> from;
  std::int64_t to;
};

std::vector<std::int64_t> sorted(std::vector<std::int64_t> sizes) {
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

const block_history::tensor* tensor_of(const block_history& run, const history_block& block) {
  const auto found = run.annotations.find(block.annotation);
  return found == run.annotations.end() || found->second.shape.empty() ? nullptr : &found->second;
}

/// What in a run has the batch in its shape.
class batch_shapes {
 public:
  batch_shapes(const block_history& run, std::int64_t asked) : batch_{asked} {
    for (const history_block& block : run.blocks) {
      if (block.category == category::parameter) bytes_of_parameters_.insert(block.bytes);
      const block_history::tensor* const tensor = tensor_of(run, block);
      if (tensor == nullptr) continue;
      if (block.category == category::parameter) of_parameters_.insert(sorted(tensor->shape));
      if (block.category != category::input) continue;
      first_of_input_ = tensor->shape[0];
      if (batch_ != 0 && tensor->shape[0] != batch_) continue;
      is_found_ = true;
      batch_ = tensor->shape[0];
      if (tokens_ == 0 && tensor->shape.size() > 1) tokens_ = batch_ * tensor->shape[1];
    }
    if (asked != 0 && first_of_input_ != 0 && !is_found_) {
      raise("no input has a batch of " + std::to_string(asked) + ": the first dimension of one is " +
            std::to_string(first_of_input_));
    }
    if (batch_ > 0) return;
    raise(
        "nothing says what scales with the batch: no block of category input has a shape; give the run's batch size and the new "
        "one, as in --batch 8:16, or a run of the same program with another batch (--batch-run)");
  }

  [[nodiscard]] std::int64_t batch() const noexcept { return batch_; }
  /// Of a matrix or vector the first dimension is the batch or its tokens; of larger tensors it may be a multiple, as of heads.
  /// A gradient may be a parameter's whose shape is not known, and of one dimension a bucket of those of several.
  [[nodiscard]] bool scales(const block_history::tensor& of, category kind) const {
    const std::int64_t first = of.shape[0];
    if (first % batch_ != 0 || first == 0 || of_parameters_.count(sorted(of.shape)) != 0) return false;
    if (first == batch_ || first == tokens_) return true;
    if (kind == category::gradient && (of_parameters_.empty() || of.shape.size() == 1)) return false;
    return of.shape.size() > 2 || tokens_ == 0;
  }
  /// Whether a block without a shape may have the batch in it. A gradient as large as a parameter is taken to be of one.
  [[nodiscard]] bool may_scale(const history_block& block) const {
    return block.category != category::gradient || bytes_of_parameters_.count(block.bytes) == 0;
  }
  /// Whether another dimension than the first is the batch, as in PyTorch's attention, whose batch is the second. Not said of a
  /// batch of 1, which a dimension may be by itself.
  [[nodiscard]] bool has_it_inside(const block_history::tensor& of) const {
    if (batch_ == 1 || of_parameters_.count(sorted(of.shape)) != 0) return false;
    return std::find(of.shape.begin() + 1, of.shape.end(), batch_) != of.shape.end();
  }

 private:
  std::int64_t batch_;
  std::int64_t tokens_ = 0;          ///< in a batch; 0: unknown
  std::int64_t first_of_input_ = 0;  ///< dimension; 0: no input has a shape
  bool is_found_ = false;            ///< whether an input has the batch
  std::set<std::vector<std::int64_t>> of_parameters_;
  std::set<std::int64_t> bytes_of_parameters_;
};

/// A number: it does not scale, and in which operation it lies may depend on the size of what it was computed from.
constexpr std::int64_t most_scalar_bytes = 8;

using blocks_of_path = std::map<std::vector<std::string>, std::vector<std::uint32_t>>;

/// The blocks of each operation, in the order of their allocation.
blocks_of_path blocks_by_path(const block_history& of) {
  std::vector<std::vector<std::uint32_t>> blocks(of.operations.size());
  for (std::uint32_t block = 0; block < of.blocks.size(); ++block) blocks[of.blocks[block].operation].push_back(block);
  blocks_of_path result;
  for (std::uint32_t operation = 0; operation < of.operations.size(); ++operation) {
    std::vector<std::uint32_t>& all = result[of.path(operation)];
    all.insert(all.end(), blocks[operation].begin(), blocks[operation].end());
  }
  return result;
}

void leave_out_scalars(std::vector<std::uint32_t>& blocks, const block_history& of) {
  std::erase_if(blocks, [&](std::uint32_t block) { return of.blocks[block].bytes <= most_scalar_bytes; });
}

/// The size of each block of `run` in another one: the n-th block of an operation in one is the n-th in the other. Where an
/// operation has more blocks in one of them, its scalars keep their size and need none in the other; and where it has as many
/// times more as the batch is larger, its blocks scale together.
class paired_runs {
 public:
  paired_runs(const block_history& run, const block_history& other) : run_{run}, other_{other} {
    for (const history_block& block : run.blocks) bytes_.push_back(block.bytes);
    blocks_of_path own = blocks_by_path(run);
    blocks_of_path of_others = blocks_by_path(other);
    for (auto& [path, pairs] : own) {
      pair(std::move(pairs), std::move(of_others[path]));
      of_others.erase(path);
    }
    for (auto& [path, others] : of_others) {
      leave_out_scalars(others, other);
      if (!others.empty()) refuse({{}, std::move(others)});
    }
    find_ratio();
    for (const unequal& each : unequal_) scale_together(each);
  }
  [[nodiscard]] const std::vector<std::int64_t>& bytes() const noexcept { return bytes_; }
  /// Of the batches.
  [[nodiscard]] double ratio() const noexcept { return ratio_; }

 private:
  /// The blocks of an operation, of which the runs have different numbers.
  struct unequal {
    std::vector<std::uint32_t> own;
    std::vector<std::uint32_t> others;
  };

  [[noreturn]] void refuse(const unequal& which) const {
    const block_history& of = which.own.empty() ? other_ : run_;
    const std::uint32_t block = which.own.empty() ? which.others.front() : which.own.front();
    raise("the two runs are not the same program with another batch: they differ in the number of blocks that " +
          owner_labels(of)[of.blocks[block].operation] + " allocates");
  }

  void pair(std::vector<std::uint32_t> own, std::vector<std::uint32_t> others) {
    if (own.size() != others.size()) {
      leave_out_scalars(own, run_);
      leave_out_scalars(others, other_);
    }
    if (own.size() != others.size()) {
      if (own.empty() || others.empty()) refuse({std::move(own), std::move(others)});
      unequal_.push_back({std::move(own), std::move(others)});
      return;
    }
    for (std::size_t index = 0; index < own.size(); ++index) bytes_[own[index]] = other_.blocks[others[index]].bytes;
  }

  /// That by which most bytes differ.
  void find_ratio() {
    std::map<double, std::int64_t> bytes_by_ratio;
    for (std::size_t index = 0; index < bytes_.size(); ++index) {
      const std::int64_t bytes = run_.blocks[index].bytes;
      if (bytes != 0 && bytes != bytes_[index])
        bytes_by_ratio[static_cast<double>(bytes_[index]) / static_cast<double>(bytes)] += bytes;
    }
    if (bytes_by_ratio.empty()) {
      if (!unequal_.empty()) refuse(unequal_.front());
      raise("nothing scales: every block has the same size in both runs");
    }
    ratio_ = std::max_element(bytes_by_ratio.begin(), bytes_by_ratio.end(), [](const auto& left, const auto& right) {
               return left.second < right.second;
             })->first;
  }

  void scale_together(const unequal& which) {
    const double count = static_cast<double>(which.own.size());
    if (static_cast<double>(which.others.size()) != std::round(count * ratio_) ||
        std::abs(count * ratio_ - std::round(count * ratio_)) > 1e-6 * count * ratio_)
      refuse(which);
    double own = 0;
    double others = 0;
    for (const std::uint32_t block : which.own) own += static_cast<double>(run_.blocks[block].bytes);
    for (const std::uint32_t block : which.others) others += static_cast<double>(other_.blocks[block].bytes);
    for (const std::uint32_t block : which.own)
      bytes_[block] = std::llround(static_cast<double>(run_.blocks[block].bytes) * (others / own));
  }

  const block_history& run_;
  const block_history& other_;
  std::vector<std::int64_t> bytes_;
  std::vector<unequal> unequal_;
  double ratio_ = 0;
};

}  // namespace

void retype(scenario& to, const block_history& run, const std::vector<what_if_change::retyping>& types,
            const std::vector<bool>& at_peak) {
  std::vector<retyping_of_owner> rules;
  for (const what_if_change::retyping& each : types) {
    retyping_of_owner& rule = rules.emplace_back(retyping_of_owner{operations_of(run, each.owner), {}, bytes_of_type(each.to)});
    if (!each.from.empty()) rule.from = bytes_of_type(each.from);
  }
  for (std::size_t index = 0; index < run.blocks.size(); ++index) {
    const history_block& block = run.blocks[index];
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const auto& each) { return each.operations[block.operation]; });
    if (rule == rules.end()) continue;
    const auto annotation = run.annotations.find(block.annotation);
    const bool is_known = annotation != run.annotations.end() && !annotation->second.dtype.empty();
    const std::optional<std::int64_t> from = is_known ? bytes_of_1024(annotation->second.dtype) : rule->from;
    if (!is_known && !from && at_peak[index]) to.price.untyped_bytes += block.bytes;
    if (!from || *from == rule->to || (is_known && annotation->second.dtype == "int8")) continue;
    const std::int64_t whole = to.bytes[index] / *from;
    const std::int64_t rest = to.bytes[index] % *from;
    to.bytes[index] = whole * rule->to + (rest * rule->to + *from - 1) / *from;
    to.is_changed[index] = true;
    ++to.price.retyped_blocks;
  }
}

void scale_batch(scenario& to, const block_history& run, const what_if_change::batching& batch,
                 const std::vector<bool>& at_peak) {
  std::vector<double> factors(run.blocks.size(), 1);
  if (batch.other != nullptr) {
    const paired_runs pairs{run, *batch.other};
    const std::vector<std::int64_t>& other = pairs.bytes();
    to.price.batch_ratio = pairs.ratio();
    for (std::size_t index = 0; index < factors.size(); ++index) {
      if (run.blocks[index].bytes == 0) continue;
      const double growth = static_cast<double>(other[index]) / static_cast<double>(run.blocks[index].bytes) - 1;
      factors[index] = std::max(0.0, 1 + growth * (batch.factor - 1) / (to.price.batch_ratio - 1));
    }
  } else {
    const batch_shapes shapes{run, batch.batch_size};
    to.price.batch_size = shapes.batch();
    const double wanted = static_cast<double>(shapes.batch()) * batch.factor;
    if (std::abs(wanted - std::round(wanted)) > 1e-6)
      raise("the run's batch is " + std::to_string(shapes.batch()) + ": a batch of " + three_digits(wanted) + " is not whole");
    for (std::size_t index = 0; index < factors.size(); ++index) {
      const history_block& block = run.blocks[index];
      if (block.category == category::parameter || block.category == category::optimizer_state) continue;
      const block_history::tensor* const tensor = tensor_of(run, block);
      if (tensor == nullptr && at_peak[index] && shapes.may_scale(block)) to.price.unshaped_bytes += block.bytes;
      if (tensor == nullptr) continue;
      if (shapes.scales(*tensor, block.category)) {
        factors[index] = batch.factor;
      } else if (at_peak[index] && shapes.has_it_inside(*tensor)) {
        to.price.inner_batch_bytes += block.bytes;
      }
    }
  }
  for (std::size_t index = 0; index < factors.size(); ++index) {
    if (factors[index] == 1) continue;
    if (at_peak[index]) to.price.scaled_bytes += run.blocks[index].bytes;
    const double scaled = static_cast<double>(to.bytes[index]) * factors[index];
    if (scaled > most_bytes) raise("a batch that large would take more than 8 EiB");
    to.bytes[index] = std::llround(scaled);
    to.is_changed[index] = true;
  }
}

}  // namespace memprof::inline MEMPROF_ABI::detail
