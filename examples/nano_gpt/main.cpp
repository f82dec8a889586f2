#include <nano_gpt/corpus.hpp>
#include <nano_gpt/input_error.hpp>
#include <nano_gpt/options.hpp>
#include <nano_gpt/train.hpp>

#include <memprof/memprof.hpp>
#include <memprof/profile/write_json.hpp>
#include <memprof/record/session.hpp>
#include <memprof/toolkit/page/html.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

constexpr int exit_bad_input = 2;

void require_long_enough(const nano_gpt::corpus& corpus, std::size_t seq_len) {
  if (corpus.size() > seq_len) return;
  throw nano_gpt::input_error{"the text has " + std::to_string(corpus.size()) + " characters but --seq-len " +
                              std::to_string(seq_len) + " needs at least one more than that: give a longer text or a " +
                              "shorter sequence"};
}

void require_known(const nano_gpt::corpus& corpus, std::size_t vocabulary_size) {
  if (corpus.vocabulary_size() <= vocabulary_size) return;
  throw nano_gpt::input_error{"the text has " + std::to_string(corpus.vocabulary_size()) + " different characters but " +
                              "--vocabulary is " + std::to_string(vocabulary_size) + ": give at least as many"};
}

/// The text, and in the options the size of its vocabulary unless one was given.
nano_gpt::corpus load_corpus(nano_gpt::options& options) {
  nano_gpt::corpus corpus{options.text ? nano_gpt::read_text(*options.text) : nano_gpt::read_default_text()};
  if (options.model.vocabulary_size == 0) options.model.vocabulary_size = corpus.vocabulary_size();
  if (options.mode == memprof::run_mode::no_dispatch) return corpus;  // no token is read
  require_long_enough(corpus, options.model.seq_len);
  require_known(corpus, options.model.vocabulary_size);
  return corpus;
}

void require_memprof(std::string_view option) {
  if (!MEMPROF_ENABLED) throw nano_gpt::input_error{std::string{option} + " needs memprof: run nano_gpt, or omit the option"};
}

void run(std::span<const char* const> arguments) {
  nano_gpt::options options = nano_gpt::parse_options(arguments);
  if (options.help) {
    std::fputs(nano_gpt::usage().c_str(), stdout);
    return;
  }
  if (options.json) {
    require_memprof("--json");
    nano_gpt::require_writable("--json", *options.json);  // now, not after the training
  }
  memprof::trace recorded;
  if (options.html) {
    require_memprof("--html");
    nano_gpt::require_writable("--html", *options.html);
    options.trace = &recorded;
  }
  if (options.mode == memprof::run_mode::no_dispatch) require_memprof("--no-dispatch");
  if (options.track_memory) require_memprof("--track-memory");
  const nano_gpt::corpus corpus = load_corpus(options);
  const memprof::capture_options how{.mode = options.mode,
                                     .device = options.device,
                                     .trace = options.trace,
                                     .trace_file = options.trace_file,
                                     .uses = options.record_uses};
  nano_gpt::frees_early = !options.free_late;
  const memprof::session session{{.capture = how}};  // if the environment asks for one: MEMPROF=1
  if (session.is_active() && options.track_memory)
    throw nano_gpt::input_error{"--track-memory ends the capture that MEMPROF asks for: omit one of them"};
  std::optional<memprof::capture_guard> capture;
  if (!session.is_active()) capture.emplace(memprof::begin_capture(how));
  nano_gpt::train(options, corpus);
  if (options.json && !options.track_memory) memprof::write_json(memprof::current_profile(), *options.json);
  if (options.html) memprof::write_html(recorded, *options.html);
}

int report(const char* what) {
  std::fflush(stdout);
  std::fprintf(stderr, "nano_gpt: %s\n", what);
  return exit_bad_input;
}

int report_out_of_memory() {
  memprof::print_memory_usage();  // the capture has ended by now, and its profile shows who holds the memory
  return report("out of memory: try a smaller --batch-size, --seq-len, --layers or --d-model");
}

}  // namespace

int main(int argument_count, char** arguments) {
  try {
    run(std::span<const char* const>{arguments, static_cast<std::size_t>(argument_count)}.subspan(argument_count > 0 ? 1 : 0));
    return 0;
  } catch (const std::bad_alloc&) {
    return report_out_of_memory();
  } catch (const std::length_error&) {  // from a std::vector larger than any address space
    return report_out_of_memory();
  } catch (const std::exception& failure) {
    return report(failure.what());
  }
}
