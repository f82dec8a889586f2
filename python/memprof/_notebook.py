"""How a profile shows itself in a notebook."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._core import Profile


def repr_html(self: Profile) -> str:
    """The page of a profile, in a frame."""
    import html
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "page.html")
        self.write_html(path)
        page = html.escape(path.read_text("utf-8"))
    return f'<iframe srcdoc="{page}" style="width: 100%; height: 720px; border: 0"></iframe>'
