"""What a program with tt-train's memory tracker takes from ttnn: `import memprof.ttnn as ttnn`."""

from . import graph

__all__ = ["graph"]
