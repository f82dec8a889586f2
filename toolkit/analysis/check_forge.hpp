#pragma once

#include <memprof/toolkit/analysis/check.hpp>

#include <cstddef>
#include <string>

/// @file
/// A checked run as what forges and CI systems show: Markdown, JUnit XML, annotations of GitHub Actions, Code Quality of GitLab.

namespace memprof::inline MEMPROF_ABI {

/// The most bytes that GitHub takes as the summary of a step.
inline constexpr std::size_t most_summary_bytes = std::size_t{1} << 20;

/// A heading with the verdict, and a table of the conditions, those that failed first. What does not fit `most_bytes` is cut
/// after a row, and the last line says so.
[[nodiscard]] std::string to_markdown(const check_report& of, std::size_t most_bytes = most_summary_bytes);

/// A test suite with a test case for each condition, as XML 1.0. Characters that XML cannot have become U+FFFD.
[[nodiscard]] std::string to_junit(const check_report& of);

/// A workflow command of GitHub Actions for each condition that failed, a line each. GitHub shows the first ten of a step:
/// https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
[[nodiscard]] std::string to_github_annotations(const check_report& of);

/// A report of GitLab's Code Quality: a JSON array with an issue for each condition that failed. Its place is the line that has
/// the limit; else the baseline, or else the recording, line 1, as GitLab shows no issue without a place. Paths are those that
/// were given, without "./": GitLab wants them relative to the repository. Fingerprints are those of the condition's name, the
/// same in each run: https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
[[nodiscard]] std::string to_gitlab_code_quality(const check_report& of);

}  // namespace memprof::inline MEMPROF_ABI
