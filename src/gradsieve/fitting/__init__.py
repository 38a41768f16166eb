"""Training on your own sequences, with sensible choices where none are made.

data = gradsieve.data.read("gestures.csv")
fitted = gradsieve.fitting.fit(data)
fitted.model.save("gestures.safetensors")
"""

from gradsieve.fitting._fit import Fitted, fit
from gradsieve.fitting._folder import NETWORK, outcome, sieve_reasons, whole_folder, write_outcome
from gradsieve.fitting._interval import Score, score
from gradsieve.fitting._recipe import Recipe
from gradsieve.fitting._search import OnRecord, Trial
from gradsieve.fitting._task import OwnTask

__all__ = [
    "fit",
    "Recipe",
    "Fitted",
    "Score",
    "score",
    "Trial",
    "OnRecord",
    "OwnTask",
    "NETWORK",
    "outcome",
    "sieve_reasons",
    "whole_folder",
    "write_outcome",
]
