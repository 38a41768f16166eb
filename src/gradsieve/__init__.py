"""gradsieve: see how far back a recurrent network can learn, and hold that reach.

A network, a minibatch, and how far its gradient reaches:

>>> import gradsieve as gs
>>> task = gs.tasks.temporal_order(length=100)
>>> net = gs.SRN.random(task.inputs, 100, task.outputs, output=task.output, variance=0.01, seed=0)
>>> u, t = task.sample(10, seed=1)
>>> flow = gs.backpropagate(net, u, t)

What an update would do to that reach, before it is made:

>>> update = flow.gradient.like(-1e-5 * flow.gradient.flat)
>>> change = gs.norm_change(flow, update)
>>> print(gs.Sieve().judge(change).reason)
vanished, grows back

Train, by the recipe that we recommend:

>>> run = gs.train(net, task, epochs=1, sizes=(200, 100, 100))
>>> run.recipe.sieve.policy
'auto'
"""

from gradsieve import recipes, tasks
from gradsieve.change import (
    NormChange,
    example_contributions,
    norm_change,
    norm_gradient,
    q_factor,
    slow_factor,
    slow_gradient,
)
from gradsieve.errors import GradsieveError, InvalidArgument, InvalidFile, MissingExtra
from gradsieve.flow import Flow, backpropagate, predict
from gradsieve.network import SRN, Weights
from gradsieve.recipe import Budget, Curriculum, Optimiser, Recipe, Schedule, Start
from gradsieve.sieve import Reason, Sieve, Verdict
from gradsieve.training import Run, train
from gradsieve.version import __version__

__all__ = [
    "tasks",
    "SRN",
    "Weights",
    "Flow",
    "backpropagate",
    "predict",
    "NormChange",
    "norm_change",
    "norm_gradient",
    "q_factor",
    "slow_factor",
    "slow_gradient",
    "example_contributions",
    "Sieve",
    "Verdict",
    "Reason",
    "recipes",
    "Recipe",
    "Start",
    "Optimiser",
    "Schedule",
    "Curriculum",
    "Budget",
    "Run",
    "train",
    "GradsieveError",
    "InvalidArgument",
    "InvalidFile",
    "MissingExtra",
    "__version__",
]
