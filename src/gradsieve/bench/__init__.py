"""What an update costs, measured side by side in one process on one core.

`timing` takes turns and forms ratios, `contenders` are the steps that are compared, `scaling` shows
how the cost grows, `measure` puts them together. Absolute times move with the machine; ratios taken
in one run are what counts.
"""

from gradsieve.bench.measure import Measurement, measure

__all__ = ["Measurement", "measure"]
