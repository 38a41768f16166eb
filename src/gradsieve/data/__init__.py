"""Your own sequences: reading, splitting, scaling.

data = gradsieve.data.read("gestures.csv")        # also .npz, .parquet, .ts
parts = gradsieve.data.split(data, seed=0)        # whole series to each part
scaling = gradsieve.data.Scaling.of(parts.train)  # learned on the training part only
"""

from gradsieve.data._columns import Columns
from gradsieve.data._missing import filled
from gradsieve.data._preparation import Missing, Preparation
from gradsieve.data._read import ENDINGS, MAX_VALUES, read
from gradsieve.data._scaling import Scaling
from gradsieve.data._sequences import Batch, Kind, Sequences, from_arrays
from gradsieve.data._split import Parts, check_trainable, split
from gradsieve.data._targets import KindChoice, PerChoice

__all__ = [
    "Missing",
    "filled",
    "ENDINGS",
    "MAX_VALUES",
    "Batch",
    "Columns",
    "Kind",
    "KindChoice",
    "Parts",
    "Preparation",
    "PerChoice",
    "Scaling",
    "Sequences",
    "check_trainable",
    "from_arrays",
    "read",
    "split",
]
