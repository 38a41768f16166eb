"""How far back a trained network learns, and what to try next.

`diagnose` measures a network of the core and `draw` shows it. `judge` says what readings mean, for
the core and for PyTorch modules alike.
"""

from gradsieve.diagnosis._judgement import Advice, Judgement, LayerReading, Symptom, judge
from gradsieve.diagnosis._measure import Diagnosis, diagnose, typical_horizon
from gradsieve.diagnosis._picture import draw

__all__ = [
    "Advice",
    "Diagnosis",
    "Judgement",
    "LayerReading",
    "Symptom",
    "diagnose",
    "draw",
    "judge",
    "typical_horizon",
]
