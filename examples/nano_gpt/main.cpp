#include <nano_gpt/corpus.hpp>
#include <nano_gpt/input_error.hpp>
#include <nano_gpt/options.hpp>
#include <nano_gpt/train.hpp>

#include <memprof/memprof.hpp>

#include <cstdio>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>

namespace {

constexpr int exit_bad_input = 2;

nano_gpt::corpus load_corpus(const nano_gpt::options& options) {
  nano_gpt::corpus corpus{options.text ? nano_gpt::read_text(*options.text) : nano_gpt::read_default_text()};
  if (corpus.size() <= options.seq_len) {
    throw nano_gpt::input_error{"the text has " + std::to_string(corpus.size()) + " characters but --seq-len " +
                                std::to_string(options.seq_len) + " needs at least one more than that: give a longer text or a " +
                                "shorter sequence"};
  }
  return corpus;
}

void run(std::span<const char* const> arguments) {
  const nano_gpt::options options = nano_gpt::parse_options(arguments);
  if (options.help) {
    std::fputs(nano_gpt::usage().c_str(), stdout);
    return;
  }
  if (options.json) {
    if (!MEMPROF_ENABLED) throw nano_gpt::input_error{"--json needs memprof: run nano_gpt, or leave it out"};
    nano_gpt::require_writable(*options.json);  // now, not after the training
  }
  nano_gpt::train(options, load_corpus(options));
}

int report(const char* what) {
  std::fflush(stdout);
  std::fprintf(stderr, "nano_gpt: %s\n", what);
  return exit_bad_input;
}

int report_out_of_memory() {
  memprof::print_memory_usage();  // the capture ended on the way here, and its profile says who holds the memory
  return report("out of memory: try a smaller --batch-size, --seq-len, --layers or --d-model");
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    run(std::span<const char* const>{arguments, static_cast<std::size_t>(argument_count)}.subspan(argument_count > 0 ? 1 : 0));
    return 0;
  } catch (const std::bad_alloc&) {
    return report_out_of_memory();
  } catch (const std::length_error&) {  // of a std::vector that no address space holds
    return report_out_of_memory();
  } catch (const std::exception& failure) {
    return report(failure.what());
  }
}
