#!/usr/bin/env python3
"""commit_subjects.py [--subject TEXT...]: checks the subjects of the commits that have not landed: `area: imperative`, at most 72
characters, as in `ledger: count a free of an unknown address`. Commits that merge or revert keep git's own subject.

Landed is what origin/main has, and what came before there was this check; of the rest, the newest 50 are read. With --subject,
checks these texts and asks git nothing."""

import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIRST_CHECKED = "a4a770f79f6b4d67faf35eb791dca86613ba9cbc"  # its descendants are checked
MOST_CHARACTERS = 72
MOST_COMMITS = 50

AREA = r"(?:README|CHANGELOG|CONTRIBUTING|CI|[a-z][\w.+/-]*)"
FORM = re.compile(rf"{AREA}(?:(?:, | and | ){AREA})*: (?P<first>[^\s,;:]+)(?P<rest>.*)")
FROM_GIT = re.compile(r'Merge |Revert "|(?:fixup|squash|amend)! ')
# How a noun phrase or a sentence about the code begins; an imperative does not.
NOT_A_VERB = frozenset(
    "a an the this that these those it its they their there we our you your i one two three four five each every all any some no none"
    " both few many more most less least other another such same new old what which who whose when where why how whether while if"
    " because so and or but nor not also only just even still then than as at by for from in into of off on onto out over since to"
    " under until up with without after before about against between during through is are was were be been has have had does did"
    " can could will would shall should may might must".split())
# Forms of verbs that are no imperative, and the words that merely end as they do.
INFLECTED = re.compile(r"[a-z]+(?:ing|ed)")
NOT_INFLECTED = frozenset("bring ping ring sing sting string swing wing embed feed need proceed seed shed speed succeed exceed bed".split())


def fault_of(subject):
    """What is wrong with a subject, or None."""
    if FROM_GIT.match(subject):
        return None
    if len(subject) > MOST_CHARACTERS:
        return f"{len(subject)} characters; at most {MOST_CHARACTERS}"
    form = FORM.fullmatch(subject)
    if form is None:
        return "not of the form `area: imperative`"
    first = form["first"].lower()
    if first in NOT_A_VERB or first not in NOT_INFLECTED and INFLECTED.fullmatch(first):
        return f'"{form["first"]}" is no imperative; begin with a verb, as in `ledger: count a free of an unknown address`'
    if form["rest"].endswith("."):
        return "ends with a full stop"
    return None


def git(folder, *arguments):
    """What git prints, or None where it fails: no git, no repository, or no such commit."""
    try:
        return subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None


def subjects_to_check(folder, first_checked):
    """(commit, subject) of each commit to check, the newest first; or a sentence that says why there are none."""
    if git(folder, "rev-parse", "--verify", "--quiet", "HEAD") is None:
        return "there is no git repository"
    landed = [name for name in ("origin/main", first_checked) if git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")]
    if not landed:
        return f"git knows neither origin/main nor {first_checked[:8]}"
    log = git(folder, "log", "--no-merges", f"--max-count={MOST_COMMITS}", "--format=%h %s", "HEAD", "--not", *landed)
    return [tuple(line.partition(" ")[::2]) for line in log.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--subject", nargs="+", metavar="TEXT", help="check these subjects")
    parser.add_argument("--repository", default=str(ROOT), metavar="FOLDER", help="default: this one")
    parser.add_argument("--after", default=FIRST_CHECKED, metavar="COMMIT", help="check what it does not contain")
    options = parser.parse_args()
    if options.subject:
        subjects = [("", subject) for subject in options.subject]
    else:
        subjects = subjects_to_check(options.repository, options.after)
        if isinstance(subjects, str):
            print(f"skipped: the subjects of commits: {subjects}")
            return 0
    faults = 0
    for commit, subject in subjects:
        fault = fault_of(subject)
        if fault:
            faults += 1
            print(f"{commit} {subject}: {fault}".lstrip())
    if faults:
        print("git commit --amend or git rebase -i changes the subject of a commit that has not landed")
    else:
        print(f"the subjects of {len(subjects)} commits are as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
