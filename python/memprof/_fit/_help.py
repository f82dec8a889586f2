"""The help of `memprof fit` about scripts, which the program's own, about models, follows."""

HELP = """\
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
