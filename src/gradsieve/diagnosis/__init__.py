"""How far back a trained network learns, and what to try next.

`diagnose` measures a network of the core and `draw` shows it. `gradsieve.judgement` says what
readings mean, here and for `gst.watch`.
"""

from gradsieve.diagnosis._measure import Diagnosis, diagnose, typical_horizon
from gradsieve.diagnosis._picture import draw
from gradsieve.judgement import Advice, Judgement, LayerReading, Symptom, judge

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
