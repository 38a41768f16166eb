"""Training on your own sequences, with sensible choices where none are made.

data = gradsieve.data.read("gestures.csv")
fitted = gradsieve.fitting.fit(data)
fitted.model.save("gestures.safetensors")
"""

from gradsieve.fitting._fit import Fitted, fit
from gradsieve.fitting._folder import NETWORK, outcome, sieve_reasons, whole_folder, write_outcome
from gradsieve.fitting._gated_run import GatedRun
from gradsieve.fitting._interval import Score, score
from gradsieve.fitting._search import NO_SEARCH, Search, cells, own_recipe
from gradsieve.fitting._task import OwnTask
from gradsieve.fitting._trials import Choice, OnRecord, Trial

__all__ = [
    "fit",
    "Search",
    "NO_SEARCH",
    "cells",
    "GatedRun",
    "own_recipe",
    "Fitted",
    "Score",
    "score",
    "Choice",
    "Trial",
    "OnRecord",
    "OwnTask",
    "NETWORK",
    "outcome",
    "sieve_reasons",
    "whole_folder",
    "write_outcome",
]
