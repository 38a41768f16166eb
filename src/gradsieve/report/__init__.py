"""Pictures of runs: the HTML report, the live view, TensorBoard events.

Everything here reads run folders (or the epoch records that go into them) and writes pictures;
nothing here trains.
"""

from gradsieve.report.live import serve
from gradsieve.report.page import write_report

__all__ = ["serve", "write_report"]
