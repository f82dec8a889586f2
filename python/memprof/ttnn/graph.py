"""`RunMode`, as in ttnn.graph."""

import enum

__all__ = ["RunMode"]


class RunMode(enum.Enum):
    """Whether operations run, or are only counted."""

    NORMAL = "normal"
    NO_DISPATCH = "no_dispatch"
