"""The console of all commands: text is shown as it is, and control characters are escaped."""

from __future__ import annotations

from typing import Any

from rich.console import Console as RichConsole
from rich.text import Text

from gradsieve.text import printable


class Console(RichConsole):
    """Square brackets are markup only where `print` is called with `markup=True`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**({"markup": False, "emoji": False} | options))

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)
