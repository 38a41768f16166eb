"""The verdict on a network's gradient, the same for the core, `diagnose` and `gst.watch`.

`judge` takes plain numbers, so that every part of the package can call it: slow Q and the reach of
each layer, its saturation and, where they are known, the loss and the loss of a constant guess. It
answers with symptoms, the evidence for them, and advice. The range of slow Q is that of
the sieve's policy, so a diagnosis says "vanishing" exactly where the sieve would correct.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

MOSTLY = 0.5  # share of activations at an end from which a layer is saturated
GUESSING = 0.98  # share of a constant guess's loss from which a network is at the guess
LEARNED = 0.2  # share below which a task is learned, whatever its gradient is
ABOVE_GUESS = 0.02  # of accuracy, at least; a difference that matters
STANDARD_ERRORS = 4.0  # of the guess over the test sequences: less may be luck


class Symptom(Enum):
    """One symptom; `str(symptom)` is the word for people."""

    HEALTHY = "healthy"
    LEARNED = "learned"
    VANISHING = "vanishing"
    EXPLODING = "exploding"
    SATURATED = "saturated"
    NO_GRADIENT = "no gradient"
    GUESSING = "stuck at a constant guess"
    NOT_JUDGED = "not judged"

    def __str__(self) -> str:
        return self.value


class Advice(Enum):
    """One piece of advice; `str(advice)` is the sentence."""

    NOTHING = "Nothing has to be done about the gradient."
    GO_ON = (
        "The gradient is no obstacle: if the network is not good enough, train longer, try other "
        "learning rates, more units or more data."
    )
    SIEVE = "Train with the sieve's default policy, from an orthogonal start."
    SMALLER_STEPS = (
        "Steps this large lose more reach than the sieve's corrections win back: take a third of "
        "the learning rate, from an orthogonal start."
    )
    UNSATURATE = (
        "Scale the inputs to unit variance, begin from smaller or orthogonal weights, and train "
        "with the sieve's default policy."
    )
    CLIP = "Clip the gradient's norm, for example at 1, lower the learning rate, and use the sieve."
    ANOTHER_RATE = (
        "The gradient reaches far enough, so its reach is not the cause: try other learning rates "
        "and more units, and check that inputs and targets belong together."
    )
    CONNECT = "Check that the loss depends on the layer's output, and that its weights are trained."
    DATA = "Give sequences with their targets for a verdict."

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class LayerReading:
    """The measurements of one layer, in one direction."""

    slow_Q: float  # log10 of near over slow far gradient; NaN where there is no near gradient
    reach: int  # steps back at which slow Q is still inside the range
    longest: int  # the largest lag there is
    saturated: Mapping[str, float] = field(default_factory=dict)  # share at an end, by gate
    name: str = ""


@dataclass(frozen=True)
class Judgement:
    """Symptoms in the order of weight, the evidence for each, and advice."""

    symptoms: tuple[Symptom, ...]
    evidence: tuple[str, ...]
    advice: tuple[Advice, ...]

    def __str__(self) -> str:
        """One line for people."""
        seen = ", ".join(map(str, self.symptoms))
        return f"{seen}: {'; '.join(self.evidence)}. {' '.join(map(str, self.advice))}"


NOT_JUDGED = Judgement(
    (Symptom.NOT_JUDGED,),
    ("how far a gradient has to reach depends on the data",),
    (Advice.DATA,),
)


def judge(
    layers: Sequence[LayerReading],
    q_range: tuple[float, float],
    loss: float | None = None,
    constant_loss: float | None = None,
    corrected: bool = False,
) -> Judgement:
    """Judge these readings.

    Args:
        layers: a reading of each layer.
        q_range: the safe range of slow Q; `Sieve().range` is that of the default policy.
        loss: the mean loss lately, in the units of `constant_loss`.
        constant_loss: the loss of the best constant guess.
        corrected: whether the sieve is at work already.
    """
    share = _share(loss, constant_loss)
    if share is not None and share < LEARNED:
        # A solved network often latches, and its gradient is small because its error is.
        said = f"the loss is {share:.1%} of that of a constant guess"
        return Judgement((Symptom.LEARNED,), (said,), (Advice.NOTHING,))
    found = [pair for layer in layers for pair in _of_layer(layer, q_range)]
    if share is not None and share >= GUESSING:
        said = f"loss {loss:.4g}, where a constant guess has {constant_loss:.4g}"
        found.append((Symptom.GUESSING, said))
    if not found:
        seen = ", ".join(f"{_named(layer)}slow Q {layer.slow_Q:+.2f}" for layer in layers)
        found = [(Symptom.HEALTHY, f"{seen}, inside {q_range[0]:g} … {q_range[1]:g}")]
    symptoms = tuple(dict.fromkeys(symptom for symptom, _ in found))
    return Judgement(symptoms, tuple(said for _, said in found), _advice(symptoms, corrected))


def at_a_guess(accuracy: float, guess: float, sequences: int) -> bool:
    """Whether an accuracy on so many sequences is no better than a constant guess.

    >>> at_a_guess(0.28, guess=0.25, sequences=2000), at_a_guess(0.3, guess=0.25, sequences=2000)
    (True, False)
    """
    error = math.sqrt(guess * (1 - guess) / sequences)
    return accuracy < guess + max(ABOVE_GUESS, STANDARD_ERRORS * error)


def _of_layer(layer: LayerReading, q_range: tuple[float, float]) -> list[tuple[Symptom, str]]:
    found = []
    lowest, highest = q_range
    if math.isnan(layer.slow_Q):
        found.append((Symptom.NO_GRADIENT, f"{_named(layer)}no gradient at its last step"))
    elif layer.slow_Q > highest:
        found.append((Symptom.VANISHING, _size(layer, "smaller")))
    elif layer.slow_Q < lowest:
        found.append((Symptom.EXPLODING, _size(layer, "larger")))
    for gate, share in layer.saturated.items():
        if share > MOSTLY:
            found.append((Symptom.SATURATED, f"{_named(layer)}{share:.0%} of {gate} at an end"))
    return found


def _advice(symptoms: tuple[Symptom, ...], corrected: bool) -> tuple[Advice, ...]:
    """The advice: the first cause decides, and a guess in range has no cause in the gradient."""
    if Symptom.NO_GRADIENT in symptoms:
        return (Advice.CONNECT,)
    advice = []
    if Symptom.VANISHING in symptoms:
        sieve = Advice.SMALLER_STEPS if corrected else Advice.SIEVE
        advice.append(Advice.UNSATURATE if Symptom.SATURATED in symptoms else sieve)
    if Symptom.EXPLODING in symptoms:
        advice.append(Advice.CLIP)
    if advice:
        return tuple(advice)
    if Symptom.GUESSING in symptoms:
        return (Advice.ANOTHER_RATE,)
    return (Advice.GO_ON,)


def _share(loss: float | None, constant_loss: float | None) -> float | None:
    if loss is None or constant_loss is None or not (constant_loss > 0 and math.isfinite(loss)):
        return None
    return loss / constant_loss


def _size(layer: LayerReading, word: str) -> str:
    size = abs(layer.slow_Q)
    factor = "beyond measure" if math.isinf(size) else f"10^{size:.1f} times"
    return (
        f"{_named(layer)}the slow gradient {layer.longest} steps back is {factor} {word} than the "
        f"last one (slow Q {layer.slow_Q:+.2f}); its reach is {layer.reach}"
    )


def _named(layer: LayerReading) -> str:
    return f"{layer.name}: " if layer.name else ""
