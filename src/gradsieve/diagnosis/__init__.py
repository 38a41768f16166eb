"""How far back a trained network learns, and why no further: `diagnose` and its picture."""

from gradsieve.diagnosis._measure import Diagnosis, diagnose, typical_horizon
from gradsieve.diagnosis._picture import draw

__all__ = ["Diagnosis", "diagnose", "draw", "typical_horizon"]
