#include <torch_examples/memory_session.hpp>

#include <memprof/backend/torch.hpp>
#include <memprof/backend/torch_no_dispatch.hpp>
#include <memprof/memprof.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace torch_examples {

namespace {

constexpr int exit_bad_input = 2;

std::int64_t parse_workers(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0 || value > 64) {
    throw std::invalid_argument{"--workers cannot be '" + std::string{text} + "': give a whole number from 0 to 64"};
  }
  return value;
}

options parse(std::span<char* const> arguments) {
  options result;
  for (std::size_t index = 0; index < arguments.size(); ++index) {
    const std::string_view name = arguments[index];
    if (name == "--no-dispatch") {
      result.no_dispatch = true;
    } else if (name == "--workers") {
      result.workers = parse_workers(++index < arguments.size() ? arguments[index] : "");
    } else {
      throw std::invalid_argument{"unknown option '" + std::string{name} + "': use --no-dispatch or --workers N"};
    }
  }
  return result;
}

int report_failure(const char* program, const char* what) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", std::filesystem::path{program}.filename().c_str(), what);
  return exit_bad_input;
}

}  // namespace

memprof::session begin_session(const options& given) {
  return given.no_dispatch ? memprof::session::with<memprof::torch_no_dispatch>({.enabled = true})
                           : memprof::session::with<memprof::torch_backend>();
}

int run(int argument_count, char** arguments, void (*program)(const options&)) {
  const std::span<char* const> all{arguments, static_cast<std::size_t>(argument_count)};
  const char* const name = all.empty() ? "" : all[0];
  try {
    program(parse(all.subspan(all.empty() ? 0 : 1)));
    return 0;
  } catch (const c10::Error& failure) {
    return report_failure(name, failure.what_without_backtrace());
  } catch (const std::exception& failure) {
    return report_failure(name, failure.what());
  }
}

}  // namespace torch_examples
