"""tt-train's memory tracker: `import memprof.ttml as ttml`, and the rest of a program that uses `ttml.core.utils` stays as it is."""

from . import core

__all__ = ["core"]
