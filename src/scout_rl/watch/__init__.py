"""The live page over run folders: ``scout watch``. `api.py` is the contract of its HTTP interface."""

from typing import Any


def frame(port: int = 8765, height: int = 900) -> Any:
    """The page of a running ``scout watch`` inside a notebook on the same machine."""
    from IPython.display import IFrame

    return IFrame(f"http://localhost:{port}/", "100%", height)
