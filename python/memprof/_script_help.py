"""The help of `memprof run`, `fit` and `waterfall` about scripts, which the program's own follows."""

WATERFALL = """\
the first steps of a script without its memory and for real, side by side, and
why they differ: docs/estimate.md

Usage: memprof waterfall [OPTIONS] --run SCRIPT.py [ARGUMENTS]
       memprof waterfall [OPTIONS] --run -m MODULE [ARGUMENTS]

What follows the script is its own. Options, beside those below:
  --steps N               a run ends when each optimizer has made so many steps
                          (default: 2)
  --show-output           the script's prints, on the standard error (default:
                          only if it fails)

Exit status: 0 if the runs could be compared, equal or not; 2 if an argument
makes no sense, the script made no tensor, or its real run needs more memory
than there is; otherwise that of the script, which failed.

Without a script:

"""

RUN = """\
record a script of Python as it is: its tensors, modules and operators, from
the moment that it imports torch: docs/python.md

Usage: memprof run [OPTIONS] SCRIPT.py [ARGUMENTS]
       memprof run [OPTIONS] -m MODULE [ARGUMENTS]

What follows the script is its own. The options are those below, without
--cuda, --nvtx and --mmap. Every malloc of Python itself, in place of tensors:
memprof run -- python3 SCRIPT.py

Of a program:

"""

FIT = """\
does a script fit on a device, and with which batch at most? docs/fit_script.md

Usage: memprof fit --device NAME [OPTIONS] SCRIPT.py [ARGUMENTS]
       memprof fit --device NAME [OPTIONS] -m MODULE [ARGUMENTS]
       memprof fit --device NAME [OPTIONS] -- PROGRAM [ARGUMENTS]

Options:
  --device NAME|FILE|SIZE
                          device: a preset, a JSON file or a size (required)
  --context SIZE          what the CUDA context takes of it, or 0 (default: what
                          was measured on the preset's card)
  --vary OPTION           what is varied: an option or an assignment of the
                          script, or env:VARIABLE (default: the batch size)
  --multiple-of N         try multiples of N alone, as for sequences whose
                          length must be a multiple of 64 (default: 1)
  --only-as-given         only whether it fits as it is given: a single trial
  --steps N               a trial ends when each optimizer has made so many
                          steps (default: 2)
  --timeout SECONDS       that a trial may take (default: 600)
  --show-output           the script's prints, on the standard error (default:
                          only if it fails)
  --json                  print the answers as JSON
  --json-out FILE         also write the answers to this file, as JSON
  -h, --help              print this help and exit

Exit status: 0 if it fits as it is given; 3 if it does not; 2 if an argument
makes no sense, or the script uses no memory of the device; otherwise that of
the script, which failed.

Without a script, the dimensions of a model are asked about:

"""


def show(command: str) -> None:
    print({"run": RUN, "fit": FIT, "waterfall": WATERFALL}[command], end="", flush=True)


def misplaced(script: list[str], options: tuple[str, ...], command: str) -> str:
    """What to add to a message about a script that got an option of memprof's, which stands before it; "" if it got none."""
    for argument in script[2 if script[0] == "-m" else 1 :]:
        option = argument.partition("=")[0]
        if option in options or option in ("-h", "--help"):
            return f"; {option} follows the script, which got it: options of {command} stand before it"
    return ""
