"""tt-train's memory tracker: with `import memprof.ttml as ttml`, all else in a program that uses `ttml.core.utils` stays."""

from . import core

__all__ = ["core"]
