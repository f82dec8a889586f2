#!/usr/bin/env python3
"""check_commit_subjects.py SCRIPT FOLDER: what scripts/commit_subjects.py accepts, what it refuses, and which commits it reads, in
repositories made under FOLDER."""

import os
import pathlib
import shutil
import subprocess
import sys

script, folder = sys.argv[1], pathlib.Path(sys.argv[2])

ACCEPTED = [
    "ledger: count a free of an unknown address",
    "compare, check: tell nameless programs apart by their files",
    "torch no_dispatch: draw the sizes of lists after skipped draws",
    "README: say what each command costs",
    "docs/install.md: name the components",
    "cmake: embed the page",
    "trace: " + "x" * 65,  # 72 characters
    "Merge branch 'reads' into all, with a subject that git makes as long as the names of branches are",
    'Revert "ledger: count a free of an unknown address"',
]
REFUSED = {
    "format": "not of the form",
    "Count a free of an unknown address": "not of the form",
    "ledger:count a free": "not of the form",
    "ledger: ": "not of the form",
    "trace: " + "x" * 66: "73 characters; at most 72",
    "run: a table of the processes": '"a" is no imperative',
    "run: the processes as a table": '"the" is no imperative',
    "docs: what outsiders found": '"what" is no imperative',
    "ledger: counted a free": '"counted" is no imperative',
    "ledger: counting a free": '"counting" is no imperative',
    "ledger: count a free of an unknown address.": "full stop",
}


def check(holds, what):
    if not holds:
        sys.exit(what)


def run(*arguments):
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def git(repository, *arguments):
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@example.com", f"GIT_{role}_DATE": "2026-01-01T00:00:00Z"}
    return subprocess.run(["git", "-C", repository, *arguments], check=True, capture_output=True, text=True, env=environment).stdout.strip()


def commit(repository, subject):
    git(repository, "commit", "--quiet", "--allow-empty", "--message", subject)
    return git(repository, "rev-parse", "HEAD")


for subject in ACCEPTED:
    status, text = run("--subject", subject)
    check(status == 0, f"{subject!r} was refused: {text}")
for subject, fault in REFUSED.items():
    status, text = run("--subject", subject)
    check(status == 1 and f"{subject}: " in text and fault in text, f"{subject!r}: {fault!r} was expected, not: {text}")

shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
status, text = run("--repository", str(folder / "none"), "--after", "0" * 40)
check(status == 0 and text.startswith("skipped"), f"no repository: {text}")

repository = str(folder / "repository")
git(str(folder), "init", "--quiet", "--initial-branch", "main", repository)
base = commit(repository, "before the check")
check(run("--repository", repository, "--after", base) == (0, "the subjects of 0 commits are as they should be\n"), "nothing to check")
status, text = run("--repository", repository, "--after", "0" * 40)
check(status == 0 and text.startswith("skipped") and "neither" in text, f"an unknown commit: {text}")

git(repository, "checkout", "--quiet", "-b", "side")
bad = commit(repository, "on a side branch")
git(repository, "checkout", "--quiet", "main")
commit(repository, "ledger: count a free")
git(repository, "merge", "--quiet", "--no-ff", "--message", "any subject of a merge", "side")
status, text = run("--repository", repository, "--after", base)
check(status == 1 and f"{bad[:7]}" in text and "on a side branch: not of the form" in text, f"a merged branch: {text}")
check("any subject" not in text and "count a free:" not in text and "before the check" not in text, f"more than one fault: {text}")

git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
commit(repository, "trace: write the end")
check(run("--repository", repository, "--after", base) == (0, "the subjects of 1 commits are as they should be\n"), "what has landed is not read")
for number in range(50):
    commit(repository, f"trace: write part {number}")
commit(repository, "landed? no")
status, text = run("--repository", repository, "--after", base)
check(status == 1 and "landed? no" in text, f"the newest commit: {text}")
