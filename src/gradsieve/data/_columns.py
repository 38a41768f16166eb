"""Which column of a table is which: the series, the time, the targets and the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradsieve.errors import InvalidFile


@dataclass(frozen=True)
class Columns:
    """Which column is what. None: the usual name where it exists; features: all that is left."""

    series: str = "series"
    time: str | None = None
    targets: tuple[str, ...] = ("target",)
    features: tuple[str, ...] | None = None

    def resolved(self, source: str, header: Sequence[str]) -> Columns:
        """These columns against a file's header."""
        _check_header(source, header)
        listed = ", ".join(repr(name[:60]) for name in header[:20])
        known = set(header)
        for role, name in (("series", self.series), *(("target", name) for name in self.targets)):
            if name not in known:
                raise InvalidFile(
                    f"{source}: there is no {role} column {name!r} among {listed}; say which "
                    f"column it is with --{role}"
                )
        time = self.time or ("time" if "time" in header else None)
        taken = {self.series, time, *self.targets}
        features = self.features or tuple(name for name in header if name not in taken)
        for name in (*features, *([time] if time else [])):
            if name not in known:
                raise InvalidFile(f"{source}: there is no column {name!r} among {listed}")
        if not features:
            raise InvalidFile(f"{source}: no feature column is left among {listed}")
        return replace(self, time=time, features=features)


def _check_header(source: str, header: Sequence[str]) -> None:
    seen: set[str] = set()
    for position, name in enumerate(header, start=1):
        if not name:
            raise InvalidFile(
                f"{source}: column {position} has no name; name it, or drop it (pandas writes its "
                "index so: save with index=False)"
            )
        if name in seen:
            raise InvalidFile(f"{source}: column {name[:60]!r} is there twice; rename one")
        seen.add(name)
