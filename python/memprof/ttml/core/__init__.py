"""The part of ttml.core that memprof stands in for."""

from . import utils

__all__ = ["utils"]
