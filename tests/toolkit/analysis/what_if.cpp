#include <memprof/toolkit/analysis/what_if.hpp>

#include <memprof/detail/file_io.hpp>
#include <memprof/memprof.hpp>
#include <memprof/toolkit/analysis/block_history.hpp>
#include <memprof/toolkit/analysis/what_if_json.hpp>
#include <memprof/toolkit/analysis/what_if_rank.hpp>
#include <memprof/toolkit/analysis/what_if_text.hpp>
#include <memprof/toolkit/format/trace_source.hpp>
#include <memprof/trace/trace.hpp>

#include <buffer.hpp>
#include <scratch_folder.hpp>
#include <toolkit/analysis/schema_keys.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace memprof_tests::analysis_what_if {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using memprof::block_history;
using memprof::category;
using memprof::what_if;
using memprof::what_if_change;
using memprof::what_if_result;

namespace {

struct recorded {
  memprof::profile profile;
  block_history history;
};

/// Runs a program under a capture. What it holds at the end lives in itself.
recorded record(const std::function<void()>& program, bool with_uses = false) {
  memprof::trace events;
  auto capture = memprof::begin_capture({.trace = &events, .uses = with_uses});
  program();
  capture.end();
  recorded result{capture.profile(), {}};
  result.history = memprof::read_block_history(events, "cpu", true);
  return result;
}

std::int64_t peak_of(const recorded& run) { return run.profile.space("cpu").cumulative_peak; }

/// A step of a random program: a block of an operation, or the free of one of the live blocks.
struct random_step {
  std::size_t operation = 0;
  std::size_t bytes = 0;
  std::size_t freed = 0;  ///< which block, counted from the first; only if `bytes` is 0
};

constexpr const char* operations[] = {"a", "b", "c", "d"};
constexpr category kinds[] = {category::activation, category::parameter, category::activation, category::temporary};

std::vector<random_step> random_program(std::mt19937& random) {
  std::vector<random_step> steps;
  std::vector<std::size_t> live;
  std::size_t blocks = 0;
  for (int count = 0; count < 60; ++count) {
    if (!live.empty() && random() % 5 < 2) {
      const std::size_t which = random() % live.size();
      steps.push_back({0, 0, live[which]});
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    } else {
      steps.push_back({random() % 4, 1 + random() % 100'000, 0});
      live.push_back(blocks++);
    }
  }
  return steps;
}

/// Runs it without the operations in `missing`.
recorded run(const std::vector<random_step>& steps, const std::set<std::size_t>& missing) {
  std::vector<buffer> blocks;
  return record([&] {
    for (const random_step& step : steps) {
      if (step.bytes == 0) {
        blocks[step.freed].free();
      } else if (missing.count(step.operation) != 0) {
        blocks.emplace_back();
      } else {
        blocks.push_back(allocated_in(operations[step.operation], step.bytes, kinds[step.operation]));
      }
    }
  });
}

/// A layer that keeps 1,000 bytes for its backward pass, and needs 5,000 more for a moment; its result has 100.
struct layer {
  buffer kept;
  buffer input;

  buffer forward(buffer from) {
    const auto scope = memprof::track_operation<"layer">();
    input = std::move(from);
    kept = buffer(1'000);
    const buffer scratch(5'000);
    return buffer(100);
  }
  buffer backward(buffer gradient) {
    const auto scope = memprof::track_operation<"layer">();
    buffer result(100);
    kept.free();
    input.free();
    gradient.free();
    return result;
  }
};

recorded train(int layers) {
  return record([&] {
    std::vector<layer> model(static_cast<std::size_t>(layers));
    buffer value = allocated_in("batch", 100, category::input);
    {
      const auto scope = memprof::track_operation("forward", category::activation);
      for (layer& each : model) value = each.forward(std::move(value));
    }
    memprof::snapshot("FORWARD");
    {
      const auto scope = memprof::track_operation("backward", category::temporary);
      for (auto each = model.rbegin(); each != model.rend(); ++each) value = each->backward(std::move(value));
    }
    memprof::snapshot("BACKWARD");
  });
}

/// A block of float32 numbers of that shape.
buffer shaped(std::size_t bytes, const std::string& shape, category kind) {
  buffer made(bytes);
  memprof::annotate(made.address(), {.shape = shape, .dtype = "float32", .category = kind});
  return made;
}

}  // namespace

TEST_CASE("what if: the peak without an owner is another one, not the old one minus the owner") {
  const recorded of = record([] {
    {
      const buffer forward = allocated_in("forward", 10'000);
      memprof::snapshot("FORWARD");
    }
    const buffer head = allocated_in("head", 7'000);
    memprof::snapshot("HEAD");
  });
  const what_if_result found = what_if(of.history, {.without = {"forward"}});
  CHECK(found.before.bytes == 10'000);
  CHECK(found.before.segment == "FORWARD");
  CHECK(found.before.operation == "forward");
  CHECK(found.after.bytes == 7'000);
  CHECK(found.after.segment == "HEAD");
  CHECK(found.after.operation == "head");
  CHECK(found.saved() == 3'000);
  CHECK(found.changed_blocks == 1);
  REQUIRE(found.owners.size() == 2);
  CHECK(found.owners[0].owner == "head");
  CHECK(found.owners[0].before == 0);
  CHECK(found.owners[0].after == 7'000);
  CHECK(found.owners[1].owner == "forward");
  CHECK(found.owners[1].before == 10'000);
  CHECK(found.owners[1].after == 0);
  const std::string text = to_text(found, {.columns = 100});
  CHECK_THAT(text, ContainsSubstring("6.84 KiB (7,000 B) of cpu instead of 9.77 KiB (10,000 B): 2.93 KiB less (-30.0 %)\n"));
  CHECK_THAT(text, ContainsSubstring("another peak: before, it was in FORWARD, operation forward\n"));
}

TEST_CASE("what if: random programs have the peak that they have when they really lack an owner or a category") {
  std::mt19937 random{20'261'126};  // NOLINT: reproducible
  for (int program = 0; program < 40; ++program) {
    const std::vector<random_step> steps = random_program(random);
    const recorded whole = run(steps, {});
    INFO("program " << program);
    for (std::size_t operation = 0; operation < 4; ++operation) {
      if (!has_owner(whole.history, operations[operation])) continue;
      const what_if_result found = what_if(whole.history, {.without = {operations[operation]}});
      CHECK(found.before.bytes == peak_of(whole));
      CHECK(found.after.bytes == peak_of(run(steps, {operation})));
    }
    CHECK(what_if(whole.history, {.without_categories = {category::activation}}).after.bytes == peak_of(run(steps, {0, 2})));
    CHECK(what_if(whole.history, {.without = {"*"}}).after.bytes == 0);
  }
}

TEST_CASE("what if: an owner is found as summaries write it, too: with a backslash before the slashes of its names") {
  const recorded of = record([] {
    const std::vector<buffer> kept = [] {
      std::vector<buffer> blocks;
      blocks.push_back(allocated_in("a/b\\c", 100));
      blocks.push_back(allocated_in("d", 10));
      return blocks;
    }();
  });
  const auto peak_without = [&](const char* owner) { return what_if(of.history, {.without = {owner}}).after.bytes; };
  CHECK(of.profile.operations[0].path == "a\\/b\\\\c");
  CHECK(peak_without("a\\/b\\\\c") == 10);
  CHECK(peak_without("a/b\\c") == 10);
  const recorded broken = record([] {
    const buffer kept = allocated_in("line\nbreak", 100);
    const buffer other = allocated_in("d", 10);
  });
  CHECK(what_if(broken.history, {.without = {"line\\nbreak"}}).after.bytes == 10);
}

TEST_CASE("what if: layers that differ in a number have one name, and one without others keeps its own") {
  const recorded of = record([] {
    const buffer first = allocated_in("h.0", 100);
    const buffer second = allocated_in("h.1", 200);
    const buffer alone = allocated_in("alert(1)", 10);
  });
  std::map<std::string, std::int64_t> before;
  for (const memprof::what_if_owner& each : what_if(of.history, {.without = {"h.0"}}).owners) before[each.owner] = each.before;
  CHECK(before == std::map<std::string, std::int64_t>{{"h.*", 300}, {"alert(1)", 10}});
}

TEST_CASE("what if: owners are paths with all below them, or globs; one that is not there is refused") {
  const recorded of = record([] {
    const auto model = memprof::track_operation("model");
    std::vector<buffer> kept;
    for (int index = 0; index < 3; ++index) {
      const auto block = memprof::track_operation("h." + std::to_string(index));
      kept.push_back(allocated_in("attn", 100));
      kept.push_back(allocated_in("mlp", 1'000));
    }
    kept.push_back(buffer(10));
  });
  const auto peak_without = [&](const char* owner) { return what_if(of.history, {.without = {owner}}).after.bytes; };
  CHECK(peak_without("model/h.1") == 3'310 - 1'100);
  CHECK(peak_without("model/h.*/attn") == 3'310 - 300);
  CHECK(peak_without("**/mlp") == 310);
  CHECK(peak_without("model") == 0);
  CHECK_THROWS_WITH(peak_without("h.*/attn"), "no operation 'h.*/attn' in this run");
  CHECK_THROWS_WITH(peak_without("(outside every operation)/x"), ContainsSubstring("no operation"));
  CHECK(peak_without("(outside every operation)") == 3'310);
  const what_if_result found = what_if(of.history, {.without = {"model/h.*/attn"}});
  REQUIRE(found.owners.size() == 3);
  CHECK(found.owners[0].owner == "model/h.*/mlp");
  CHECK(found.owners[0].after == 3'000);
  CHECK(found.owners[1].owner == "model");
  CHECK(found.owners[2].owner == "model/h.*/attn");
  CHECK(found.owners[2].blocks_before == 3);
}

TEST_CASE("what if: another element type changes what is known to hold real numbers") {
  const recorded of = record([] {
    const auto scope = memprof::track_operation("forward");
    std::vector<buffer> kept;
    kept.emplace_back(4'000);
    memprof::annotate(kept.back().address(), {.shape = "[1000]", .dtype = "float32"});
    kept.emplace_back(800);
    memprof::annotate(kept.back().address(), {.shape = "[100]", .dtype = "int64"});
    kept.emplace_back(200);
    memprof::annotate(kept.back().address(), {.shape = "[100]", .dtype = "bfloat16"});
    kept.emplace_back(60);
  });
  const what_if_result found = what_if(of.history, {.types = {{"forward", "", "bf16"}}});
  CHECK(found.before.bytes == 5'060);
  CHECK(found.after.bytes == 2'000 + 800 + 200 + 60);
  CHECK(found.price.untyped_bytes == 60);
  CHECK(found.changed_blocks == 1);
  CHECK(found.price.retyped_blocks == 1);
  CHECK_THAT(to_text(found, {.columns = 200}), ContainsSubstring("kernels for another type may need other scratch memory"));
  CHECK(what_if(of.history, {.types = {{"forward", "", "fp32"}}}).price.retyped_blocks == 1);  // the bf16 ones
  CHECK(what_if(of.history, {.types = {{"forward", "fp32", "bf16"}}}).after.bytes == 2'000 + 800 + 200 + 30);
  CHECK(what_if(of.history, {.types = {{"forward", "fp32", "fp8"}}}).after.bytes == 1'000 + 800 + 100 + 15);
  CHECK_THROWS_WITH(what_if(of.history, {.types = {{"forward", "", "fp12"}}}),
                    ContainsSubstring("'fp12' is not an element type"));
}

TEST_CASE("what if: by shapes, what scales with the batch is what has it in its first dimension") {
  const auto run_with = [](std::size_t batch) {
    return record([batch] {
      const auto scope = memprof::track_operation("step");
      const std::string b = std::to_string(batch);
      const buffer weight = shaped(8 * 16 * 4, "[8, 16]", category::parameter);
      const buffer transposed =
          shaped(16 * 8 * 4, "[16, 8]", category::temporary);  // 16 is a multiple of the batch, but a weight's
      const buffer input = shaped(batch * 10 * 4, "[" + b + ", 10]", category::input);
      const buffer tokens = shaped(batch * 10 * 8 * 4, "[" + std::to_string(batch * 10) + ", 8]", category::activation);
      const buffer heads = shaped(batch * 4 * 10 * 10 * 4, "[" + std::to_string(batch * 4) + ", 10, 10]", category::activation);
      const buffer mask = shaped(12 * 12 * 4, "[12, 12]", category::activation);
      const buffer unknown(7);
    });
  };
  const recorded two = run_with(2);
  const what_if_result found = what_if(two.history, {.batch = what_if_change::batching{.factor = 3}});
  CHECK(found.after.bytes == peak_of(run_with(6)));
  CHECK(found.price.batch_size == 2);
  CHECK(found.price.scaled_bytes == 2 * 10 * 4 + 2 * 10 * 8 * 4 + 2 * 4 * 10 * 10 * 4);
  CHECK(found.price.unshaped_bytes == 7);
  CHECK(found.price.inner_batch_bytes == 0);
  const recorded eight = run_with(8);
  CHECK(what_if(two.history, {.batch = what_if_change::batching{.factor = 10, .other = &eight.history}}).after.bytes ==
        peak_of(run_with(20)));
  CHECK(what_if(eight.history, {.batch = what_if_change::batching{.factor = 0.25, .other = &two.history}}).after.bytes ==
        peak_of(two));
  CHECK(what_if(two.history, {.batch = what_if_change::batching{.factor = 10, .other = &eight.history}}).price.batch_ratio == 4);

  CHECK_THROWS_WITH(what_if(two.history, {.batch = what_if_change::batching{.factor = 2, .other = &two.history}}),
                    ContainsSubstring("every block has the same size in both runs"));
  const recorded unshaped = record([] { const buffer made = allocated_in("step", 10); });
  CHECK_THROWS_WITH(what_if(two.history, {.batch = what_if_change::batching{.factor = 0.7}}),
                    ContainsSubstring("the run's batch is 2: a batch of 1.40 is not whole"));
  CHECK_THROWS_WITH(what_if(two.history, {.batch = what_if_change::batching{.factor = 2, .batch_size = 7}}),
                    ContainsSubstring("no input has a batch of 7: the first dimension of one is 2"));
  CHECK_THROWS_WITH(what_if(unshaped.history, {.batch = what_if_change::batching{.factor = 2}}),
                    ContainsSubstring("no block of category input has a shape"));
  CHECK_THROWS_WITH(what_if(two.history, {.batch = what_if_change::batching{.factor = 2, .other = &unshaped.history}}),
                    ContainsSubstring("they differ in the number of blocks that step allocates"));
}

TEST_CASE("what if: by shapes, the gradient of an activation scales with the batch, and that of a parameter does not") {
  const auto run_with = [](std::size_t batch) {
    return record([batch] {
      const std::string of_batch = "[" + std::to_string(batch) + ", 10]";
      const buffer weight = shaped(16 * 10 * 4, "[16, 10]", category::parameter);
      const buffer bias = shaped(10 * 4, "[10]", category::parameter);
      const buffer input = shaped(batch * 10 * 4, of_batch, category::input);
      const buffer of_input = shaped(batch * 10 * 4, of_batch, category::gradient);
      const buffer of_weight = shaped(16 * 10 * 4, "[16, 10]", category::gradient);
      const buffer of_bias = allocated_in("backward", 10 * 4, category::gradient);  // unshaped, but as large as a parameter
      const buffer unknown = allocated_in("backward", 7, category::gradient);
    });
  };
  const recorded four = run_with(4);
  const what_if_result found = what_if(four.history, {.batch = what_if_change::batching{.factor = 2}});
  CHECK(found.after.bytes == peak_of(run_with(8)));
  CHECK(found.price.scaled_bytes == 2 * 4 * 10 * 4);
  CHECK(found.price.unshaped_bytes == 7);
  // 1000 and 100 are multiples of the batch, but of a bucket of gradients, and of a parameter from before the capture.
  const recorded unlike = record([] {
    const buffer input = shaped(4 * 8, "[4]", category::input);
    const buffer bucket = shaped(1'000 * 4, "[1000]", category::gradient);
    const buffer of_unknown = shaped(100 * 10 * 4, "[100, 10]", category::gradient);
  });
  CHECK(what_if(unlike.history, {.batch = what_if_change::batching{.factor = 2}}).after.bytes == 8 * 8 + 8'000);
}

TEST_CASE("what if: by shapes, what has the batch in another dimension than the first does not scale, and is said") {
  const auto run_with = [](std::size_t batch) {
    return record([batch] {
      const auto scope = memprof::track_operation("attention");
      const std::string b = std::to_string(batch);
      const buffer input = shaped(batch * 10 * 4, "[" + b + ", 10]", category::input);
      const buffer weight = shaped(6 * 7 * 4, "[6, 7]", category::parameter);
      const buffer of_weight = shaped(6 * 7 * 4, "[7, 6]", category::temporary);  // 6 in it is no batch
      const buffer packed =
          shaped(3 * 10 * batch * 8 * 4, "[3, 10, " + b + ", 8]", category::activation);  // as PyTorch's attention
    });
  };
  const std::int64_t rest = 2 * 6 * 7 * 4;
  const recorded six = run_with(6);
  const what_if_result found = what_if(six.history, {.batch = what_if_change::batching{.factor = 2}});
  CHECK(found.price.scaled_bytes == 6 * 10 * 4);
  CHECK(found.price.inner_batch_bytes == 3 * 10 * 6 * 8 * 4);
  CHECK(found.after.bytes == rest + 2 * 6 * 10 * 4 + 3 * 10 * 6 * 8 * 4);
  CHECK_THAT(to_text(found, {.columns = 200}),
             ContainsSubstring("5.62 KiB of the old peak have that in another dimension and count as if they did not scale"));
  const recorded three = run_with(3);
  const what_if_result sure = what_if(six.history, {.batch = what_if_change::batching{.factor = 2, .other = &three.history}});
  CHECK(sure.after.bytes == rest + 12 * (10 * 4 + 3 * 10 * 8 * 4));
  CHECK(sure.price.inner_batch_bytes == 0);
}

TEST_CASE("what if: an operation that has as many times more blocks as the batch is larger scales, as a loader's samples") {
  const auto run_with = [](std::size_t batch, std::size_t samples) {
    return record([&] {
      std::vector<buffer> loaded;
      for (std::size_t sample = 0; sample < samples; ++sample) loaded.push_back(allocated_in("loader", 500));
      const buffer weight = allocated_in("model", 3'000);
      const buffer activations = allocated_in("step", batch * 1'000);
    });
  };
  const recorded two = run_with(2, 2);
  const recorded eight = run_with(8, 8);
  const auto batch = [](double factor, const recorded& other) {
    return what_if_change{.batch = what_if_change::batching{.factor = factor, .batch_size = 0, .other = &other.history}};
  };
  CHECK(what_if(two.history, batch(3, eight)).after.bytes == 3'000 + 6 * 1'500);
  CHECK(what_if(eight.history, batch(0.5, two)).after.bytes == 3'000 + 4 * 1'500);
  CHECK(what_if(two.history, batch(3, eight)).price.batch_ratio == 4);
  // Twice as many samples with four times the batch: another number of steps, or another program.
  CHECK_THROWS_WITH(what_if(two.history, batch(2, run_with(8, 4))), ContainsSubstring("blocks that loader allocates"));
  // Nothing but the number of blocks says what the ratio of the batches is.
  CHECK_THROWS_WITH(what_if(two.history, batch(2, run_with(2, 4))), ContainsSubstring("blocks that loader allocates"));
}

TEST_CASE("what if: what holds much at either peak has a row") {
  const recorded run = record([] {
    {
      const buffer gone = allocated_in("gone", 900);
      const buffer less = allocated_in("less", 10);
    }
    std::vector<buffer> many;
    for (int index = 0; index < 30; ++index)
      many.push_back(allocated_in("op " + std::string(1, static_cast<char>('A' + index)), 20));
  });
  const what_if_result found = what_if(run.history, {.without = {"gone"}});
  REQUIRE(found.before.bytes == 910);
  REQUIRE(found.after.bytes == 600);
  CHECK(found.owners.front().after == 20);
  // 19 of the 30 have a row beside it; the other 11 hold 220 bytes, and "less" held 10.
  const std::string text = to_text(found, {});
  CHECK_THAT(text, ContainsSubstring("gone        900 B    0 B  -900 B"));
  CHECK_THAT(text, ContainsSubstring("12 others    10 B  220 B  +210 B"));
  CHECK_THAT(text, ContainsSubstring("310 B less (-34.1 %)"));
  // 1 of 2,500 bytes is 0.04 %.
  const recorded whole = record([] {
    const buffer most = allocated_in("most", 2'499);
    const buffer one = allocated_in("one", 1);
  });
  CHECK_THAT(to_text(what_if(whole.history, {.without = {"one"}}), {}), ContainsSubstring("1 B less\n"));
}

TEST_CASE("what if: a number that lies in another operation in the other run keeps its size and needs no partner") {
  const auto run_with = [](std::size_t batch) {
    return record([&] {
      const buffer input = allocated_in("step", batch * 1'000);
      const buffer number = allocated_in(batch > 4 ? "step/fill" : "step", 4);
      const buffer loss = allocated_in("loss", batch * 8);  // of one sample: as small as a number
      const buffer counter = allocated_in("count", 8);
    });
  };
  const recorded two = run_with(2);
  const recorded eight = run_with(8);
  const auto batch = [](double factor, const recorded& other) {
    return what_if_change{.batch = what_if_change::batching{.factor = factor, .batch_size = 0, .other = &other.history}};
  };
  CHECK(what_if(two.history, batch(3, eight)).after.bytes == 6 * 1'008 + 12);
  CHECK(what_if(eight.history, batch(0.5, two)).after.bytes == 4 * 1'008 + 12);
  CHECK(what_if(run_with(1).history, batch(3, two)).after.bytes == 3 * 1'008 + 12);
  const recorded other = record([] {
    const buffer input = allocated_in("step", 2'000);
    const buffer more = allocated_in("other", 9);
  });
  CHECK_THROWS_WITH(what_if(two.history, batch(2, other)), ContainsSubstring("blocks that loss allocates"));
  CHECK_THROWS_WITH(what_if(other.history, batch(2, two)), ContainsSubstring("blocks that other allocates"));
}

TEST_CASE("what if: recomputed layers keep their inputs and results, and need their scratch twice") {
  const recorded of = train(3);
  const what_if_result found = what_if(of.history, {.recompute = {"forward/layer"}});
  // The third layer: two kept, the batch and two results as inputs, its own block, scratch and result.
  CHECK(found.before.bytes == 2 * 1'000 + 3 * 100 + 1'000 + 5'000 + 100);
  // In the backward pass, the third layer again: three inputs, its result as a gradient, its own block, scratch, and a copy of
  // its result.
  CHECK(found.after.bytes == 3 * 100 + 100 + 1'000 + 5'000 + 100);
  CHECK(found.after.segment == "BACKWARD");
  CHECK(found.after.operation == "forward/layer");
  CHECK(found.after.is_return);
  CHECK(found.price.recomputed_calls == 3);
  CHECK(found.price.recomputed_allocations == 9);
  CHECK(found.price.recomputed_bytes == 3 * (1'000 + 5'000 + 100));
  CHECK_THAT(to_text(found), ContainsSubstring("17.9 KiB in 9 allocations of 3 calls that are computed twice\n"));
}

TEST_CASE("what if: what a recomputed call may free before its end is said where the peak lies in its first run") {
  const auto run_with = [](bool frees_at_once) {
    return record([frees_at_once] {
      buffer gradient = shaped(3'000, "[750]", category::gradient);  // of the step before, up to zero_grad
      std::vector<buffer> kept;
      {
        const auto forward = memprof::track_operation("forward", category::activation);
        const auto scope = memprof::track_operation<"layer">();
        for (const std::size_t bytes : {400, 300, 1'000}) {  // each is made from the last
          if (frees_at_once && kept.size() == 2) kept.front().free();
          kept.emplace_back(bytes);
        }
      }
      gradient.free();
      const auto backward = memprof::track_operation("backward", category::temporary);
      while (!kept.empty()) kept.pop_back();
    });
  };
  const what_if_result found = what_if(run_with(false).history, {.recompute = {"forward/layer"}});
  CHECK(found.after.bytes == 3'000 + 1'700);
  CHECK_FALSE(found.after.is_return);
  CHECK(found.price.held_bytes == 400 + 300);
  CHECK(peak_of(run_with(true)) == 3'000 + 1'300);
  CHECK_THAT(to_text(found, {.columns = 200}),
             ContainsSubstring("700 B of the new peak are what a recomputed call holds to its end: where the program frees it "
                               "after its last use there, the peak is lower by up to that\n"));
  // That peak is in the repetition, where all of it is kept.
  CHECK(what_if(train(3).history, {.recompute = {"forward/layer"}}).price.held_bytes == 0);
}

TEST_CASE("what if: what a recomputed layer freed of its inputs lives until it is recomputed") {
  const recorded of = record([] {
    buffer kept;
    buffer result;
    {
      const auto forward = memprof::track_operation("forward", category::activation);
      buffer input(300);
      {
        const auto scope = memprof::track_operation<"layer">();
        kept = buffer(1'000);
        input.free();
        result = buffer(10);
      }
      const buffer head = allocated_in("head", 2'000);
    }
    const auto backward = memprof::track_operation("backward", category::temporary);
    const buffer gradient(500);
    kept.free();
  });
  const what_if_result found = what_if(of.history, {.recompute = {"forward/layer"}});
  CHECK(found.before.bytes == 3'010);
  CHECK(found.after.bytes == 2'310);  // the head, the result, and the input that is still needed
}

TEST_CASE("what if: layers whose backward operations have no common scope are recomputed just before the first of them") {
  const recorded of = record([] {
    std::vector<buffer> first;
    std::vector<buffer> second;
    std::vector<buffer> results;
    {
      const auto forward = memprof::track_operation("forward", category::activation);
      for (int layer = 0; layer < 2; ++layer) {
        const auto scope = memprof::track_operation<"layer">();
        first.emplace_back(1'000);
        second.emplace_back(1'000);
        results.emplace_back(100);
      }
    }
    const auto backward = memprof::track_operation("backward", category::temporary);
    { const buffer head = allocated_in("head", 3'000); }
    for (int layer = 2; layer-- > 0;) {
      {
        const auto scope = memprof::track_operation<"d_first">();
        first.pop_back();
      }
      const auto scope = memprof::track_operation<"d_second">();
      second.pop_back();
    }
  });
  const what_if_result found = what_if(of.history, {.recompute = {"forward/layer"}});
  CHECK(found.before.bytes == 4'000 + 200 + 3'000);
  CHECK(found.after.bytes == 200 + 3'000);  // at the head, before any layer is there again
  CHECK(found.after.operation == "backward/head");
}

TEST_CASE("what if: offloaded blocks are away between the end of their operation and their free") {
  const recorded of = train(3);
  const what_if_result found = what_if(of.history, {.offload = {"forward/layer"}});
  // The third layer: the batch and a result as inputs, its own block, scratch and result. The first result is away, too.
  CHECK(found.after.bytes == 2 * 100 + 1'000 + 5'000 + 100);
  CHECK(found.price.offloaded_blocks == 3 + 2);
  CHECK(found.price.offloaded_bytes == 3'200);
  CHECK(found.price.fetched_bytes == 3'200);
  CHECK(found.price.offloaded_peak == 3'200);
  CHECK(found.price.unreturned_blocks == 0);

  const recorded state = record([] {
    const buffer moments = allocated_in("adamw", 4'000, category::optimizer_state);
    { const buffer work = allocated_in("work", 1'000); }
  });
  const what_if_result away = what_if(state.history, {.offload = {"adamw"}});
  CHECK(away.before.bytes == 5'000);
  CHECK(away.after.bytes == 4'000);  // while it is made
  CHECK(away.price.unreturned_blocks == 0);
  buffer kept;
  const recorded for_ever = record([&] { kept = allocated_in("adamw", 4'000, category::optimizer_state); });
  const what_if_result gone = what_if(for_ever.history, {.offload = {"adamw"}});
  CHECK(gone.price.unreturned_blocks == 1);
  CHECK_THAT(to_text(gone), ContainsSubstring("1 offloaded block is never freed"));
  CHECK_THROWS_WITH(what_if(state.history, {.offload = {"(outside every operation)"}}), ContainsSubstring("name an operation"));
}

TEST_CASE("what if: what was offloaded comes back for its last use alone, if that is known") {
  const auto run_with = [](bool with_uses) {
    return record(
        [] {
          buffer kept;
          buffer result;
          {
            const auto scope = memprof::track_operation("layer", category::activation);
            kept = buffer(1'000);
            result = buffer(10);
          }
          result.free();
          const auto scope = memprof::track_operation("gradients of layer", category::temporary);
          {
            const buffer work = allocated_in("product", 100);
            memprof::mark_use(kept.address());
          }
          { const buffer work = allocated_in("sum", 700); }
          kept.free();
        },
        with_uses);
  };
  CHECK(what_if(run_with(false).history, {.offload = {"layer"}}).after.bytes == 1'700);
  CHECK(what_if(run_with(true).history, {.offload = {"layer"}}).after.bytes == 1'100);
}

TEST_CASE("what if: what is never freed and has no category stays where it is when its owner is offloaded") {
  buffer workspace;
  const recorded of = record([&] {
    buffer kept;
    buffer result;
    {
      const auto scope = memprof::track_operation("layer", category::activation);
      kept = buffer(1'000);
      workspace = allocated_in("product", 3'000, category::other);
      result = buffer(10);
    }
    { const buffer scratch = allocated_in("other", 500); }
  });
  const what_if_result found = what_if(of.history, {.offload = {"layer"}});
  CHECK(found.before.bytes == 4'510);
  CHECK(found.price.offloaded_blocks == 1);
  CHECK(found.price.offloaded_bytes == 1'000);
  CHECK(found.price.unreturned_blocks == 0);
  CHECK(found.price.unmoved_blocks == 1);
  CHECK(found.price.unmoved_bytes == 3'000);
  CHECK(found.after.bytes == 4'010);  // in the layer; then only the workspace and others' scratch
  CHECK_THAT(to_text(found), ContainsSubstring("2.93 KiB in 1 block of the offloaded owners stays: never freed"));
  CHECK(to_json(found)["price"]["unmoved_bytes"] == 3'000);
}

TEST_CASE("what if: where an allocator reserved memory, both runs go through its model") {
  constexpr std::int64_t mebibyte = 1 << 20;
  memprof::trace events;
  auto capture = memprof::begin_capture({.trace = &events});
  const memprof::memory_space device{"cuda:0"};
  const memprof::extend::event_sink sink;
  {
    const auto scope = memprof::track_operation("weights");
    sink.reserve(device, 0x1000'0000U, 30 * mebibyte);
    sink.allocate(device, 0x1000'0000U, 29 * mebibyte);
  }
  {
    const auto scope = memprof::track_operation("scores");
    sink.allocate(device, 0x4000'0000U, 3 * mebibyte);
    sink.allocate(device, 0x5000'0000U, 3 * mebibyte);
  }
  capture.end();
  const block_history run = memprof::read_block_history(events, "cuda:0", false);
  CHECK(run.has_allocator);
  // From 10 MiB on, a block has a segment of its own in steps of 2 MiB; smaller ones share segments of 20 MiB.
  const what_if_result found = what_if(run, {.without = {"scores"}});
  CHECK(found.before.bytes == 35 * mebibyte);
  CHECK(found.reserved_before == (30 + 20) * mebibyte);
  CHECK(found.after.bytes == 29 * mebibyte);
  CHECK(found.reserved_after == 30 * mebibyte);
  CHECK_THAT(to_text(found), ContainsSubstring("Reserved  30.0 MiB instead of 50.0 MiB, both by the model"));
  CHECK_FALSE(record([] { const buffer block = allocated_in("a", 10); }).history.has_allocator);
}

TEST_CASE("what if: blocks end after their last use, and those without a known use stay") {
  const auto program = [] {
    buffer first(1'000);
    memprof::mark_use(first.address());
    const buffer unused(30);
    buffer second(500);
    memprof::mark_use(first.address());  // the last
    const buffer third(2'000);
    memprof::mark_use(second.address());
    memprof::mark_use(third.address());
    second.free();
    const buffer fourth(10);
    memprof::mark_use(fourth.address());
  };
  const recorded of = record(program, true);
  REQUIRE(of.history.uses.size() == 5);
  const what_if_result found = what_if(of.history, {.free_at_last_use = true});
  CHECK(found.before.bytes == 1'000 + 30 + 500 + 2'000);
  CHECK(found.after.bytes == 30 + 500 + 2'000);
  CHECK(found.changed_blocks == 4);  // third and fourth are freed at once, too; second is, but for the moment of its free
  CHECK(found.price.unused_bytes == 30);
  CHECK_THAT(to_text(found), ContainsSubstring("30 B of the old peak have no recorded use, and stay as long as they did\n"));

  CHECK(record(program).history.uses.empty());  // nothing asked
  CHECK_THROWS_WITH(what_if(record(program).history, {.free_at_last_use = true}),
                    ContainsSubstring("no use of a block is recorded"));
}

TEST_CASE("what if: a use within an operation lasts until that ends, whatever uses the block meanwhile") {
  const memprof::extend::event_sink sink;
  const recorded of = record(
      [&] {
        buffer used(1'000);
        {
          const auto outer = memprof::track_operation<"outer">();
          sink.use(used.address(), true);
          {
            const auto inner = memprof::track_operation<"inner">();
            sink.use(used.address(), true);
            const buffer small(10);
          }
          memprof::mark_use(used.address());
          const buffer scratch(100);
        }
        const buffer later(5'000);
        {
          const auto open = memprof::track_operation<"another">();
          const buffer last(1);
          memprof::mark_use(last.address());
        }
      },
      true);
  const what_if_result found = what_if(of.history, {.free_at_last_use = true});
  CHECK(found.before.bytes == 1'000 + 5'000 + 1);
  CHECK(found.after.bytes == 5'000 + 1);  // `later` has no use
  CHECK(found.price.unused_bytes == 5'000);
  REQUIRE(of.history.uses.size() == 5);
  CHECK(of.history.uses[0].last == 5);  // its own allocation, and both events of two blocks
}

TEST_CASE("what if: uses of one block by two threads last until the later operation ends") {
  const memprof::extend::event_sink sink;
  const recorded of = record(
      [&] {
        buffer used(1'000);
        {
          const auto first = memprof::track_operation<"first">();
          sink.use(used.address(), true);
          std::thread{[&] {
            const auto second = memprof::track_operation<"second">();
            sink.use(used.address(), true);
          }}.join();
          const buffer scratch(100);
        }
        const buffer later(50);
        memprof::mark_use(later.address());
      },
      true);
  CHECK(of.history.uses.at(0).last == 3);
  CHECK(what_if(of.history, {.free_at_last_use = true}).after.bytes == 1'100);
}

TEST_CASE("what if: uses that name no live block are counted, and a long operation may use a block as often as it likes") {
  const memprof::extend::event_sink sink;
  const recorded of = record(
      [&] {
        const auto training = memprof::track_operation<"train">();
        const buffer weights(1'000);
        for (int step = 0; step < 100'000; ++step) {
          sink.use(weights.address(), true);
          memprof::mark_use(weights.address() + 8);  // within the block
        }
        memprof::mark_use(nullptr);
        const buffer later(1);
      },
      true);
  CHECK(of.history.unmatched_uses == 100'000);
  const what_if_result found = what_if(of.history, {.free_at_last_use = true});
  CHECK(found.price.unmatched_uses == 100'000);
  CHECK(found.after.bytes == 1'001);
  CHECK_THAT(to_text(found), ContainsSubstring("100,000 uses name no live block"));
}

TEST_CASE("what if: parameters and optimizer state stay after their last use, as a further step would need them") {
  const recorded of = record(
      [] {
        const buffer weights = allocated_in("model", 1'000, category::parameter);
        const buffer state = allocated_in("optimizer", 500, category::optimizer_state);
        const buffer input = allocated_in("batch", 70, category::input);
        for (const buffer* const each : {&weights, &state, &input}) memprof::mark_use(each->address());
        const buffer later = allocated_in("later", 200, category::temporary);
        memprof::mark_use(later.address());
      },
      true);
  const what_if_result found = what_if(of.history, {.free_at_last_use = true});
  CHECK(found.after.bytes == 1'000 + 500 + 200);
  CHECK(found.price.unused_bytes == 0);
}

TEST_CASE("what if: blocks can be freed at their last use and be smaller") {
  const recorded of = record(
      [] {
        const buffer first = allocated_in("a", 1'000);
        memprof::annotate(first.address(), {.dtype = "fp32"});
        memprof::mark_use(first.address());
        const buffer second = allocated_in("b", 700);
        memprof::annotate(second.address(), {.dtype = "fp32"});
        memprof::mark_use(second.address());
      },
      true);
  CHECK(what_if(of.history, {.types = {{"a", "", "bf16"}}, .free_at_last_use = true}).after.bytes == 700);
  CHECK(what_if(of.history, {.without = {"b"}, .free_at_last_use = true}).after.bytes == 1'000);
}

TEST_CASE("what if: a trace without its first events is refused") {
  const memprof_tests::scratch_folder folder;
  const std::string path = folder.file("run.memtrace");
  {
    auto capture = memprof::begin_capture({.trace_file = path, .trace_limit = 65'536});
    for (int step = 0; step < 200'000; ++step) (void)allocated_in("work", static_cast<std::size_t>(step) + 1);
    capture.end();
  }
  const memprof::detail::file_handle file{std::fopen(path.c_str(), "rb")};
  CHECK_THROWS_WITH(memprof::read_block_history(memprof::trace_file{file.get(), path}, "cpu", false),
                    ContainsSubstring("lacks its first events, because it was recorded with a trace_limit"));
}

TEST_CASE("what if: an answer from a run that is not exact says so") {
  recorded of = record([] { const buffer kept = allocated_in("forward", 1'000); });
  CHECK_FALSE(of.history.exact);  // the profile says it
  of.history.exact = true;
  CHECK(what_if(of.history, {.without = {"forward"}}).exact);
  CHECK_THAT(to_text(what_if(of.history, {.without = {"forward"}})), !ContainsSubstring("Accuracy"));
  CHECK(rank_owners(of.history).exact);
  CHECK(find_target(of.history, 1'000).exact);
  of.history.exact = false;
  const what_if_result found = what_if(of.history, {.without = {"forward"}});
  CHECK_THAT(to_text(found), ContainsSubstring("Accuracy  not exact"));
  CHECK(to_json(found)["exact"] == false);
  CHECK_THAT(to_text(rank_owners(of.history)), ContainsSubstring("Accuracy  not exact"));
  CHECK_THAT(to_text(find_target(of.history, 1'000)), ContainsSubstring("Accuracy  not exact"));
}

TEST_CASE("what if: caveats of the recording are the answer's, and so are those of a run with another batch") {
  recorded of = record([] { const buffer kept = allocated_in("forward", 1'000); });
  of.history.remarks = {"12 bytes were not recorded"};
  for (const std::string& text : {to_text(what_if(of.history, {.without = {"forward"}})), to_text(rank_owners(of.history)),
                                  to_text(find_target(of.history, 1'000))})
    CHECK_THAT(text, ContainsSubstring("12 bytes were not recorded\n"));
  CHECK(to_json(rank_owners(of.history))["caveats"].back() == "12 bytes were not recorded");
  CHECK(to_json(find_target(of.history, 1'000))["caveats"].back() == "12 bytes were not recorded");

  recorded other = record([] { const buffer kept = allocated_in("forward", 2'000); });
  other.history.remarks = {"12 bytes were not recorded", "its clock stood still"};
  what_if_change change;
  change.batch = what_if_change::batching{.factor = 3, .batch_size = 0, .other = &other.history};
  CHECK(what_if(of.history, change).remarks ==
        std::vector<std::string>{"12 bytes were not recorded", "the other run: its clock stood still"});
}

TEST_CASE("what if: the JSON has what its schema describes") {
  const nlohmann::json schema = read_schema("what_if.schema.json");
  const nlohmann::ordered_json document = to_json(what_if(train(2).history, {.recompute = {"forward/layer"}}));
  check_keys(document, schema["definitions"]["answer"]);
  check_keys(document["before"], schema["definitions"]["peak"]);
  check_keys(document["price"], schema["definitions"]["price"]);
  check_keys(document["owners"][0], schema["definitions"]["owner"]);
  CHECK(document["format"] == memprof::what_if_json_format);
  CHECK(document["price"]["recomputed_calls"] == 2);
  std::int64_t sum = 0;
  for (const auto& owner : document["owners"]) sum += owner["bytes_after"].get<std::int64_t>();
  CHECK(sum == document["after"]["bytes"]);
}

TEST_CASE("what if: a run without blocks has no peak") {
  const recorded of = record([] {});
  const what_if_result found = what_if(of.history, {.without_categories = {category::activation}});
  CHECK(found.before.bytes == 0);
  CHECK(found.after.bytes == 0);
  CHECK_THAT(to_text(found), ContainsSubstring("the change affects no block"));
  CHECK_THAT(to_text(found), !ContainsSubstring("recomputation"));  // nobody asked for it
}

}  // namespace memprof_tests::analysis_what_if
