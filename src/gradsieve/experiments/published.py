"""Published figures: the paper's Table 1 in %, and those that `anchors` quotes."""

from __future__ import annotations

from dataclasses import dataclass

OFF, ON = "SGD", "skip (Lemma 1)"

# Best and mean accuracy of ten networks, by task, length and arm. None is the paper's N/A; 99
# stands for "> 99 %" too.
TABLE1: dict[tuple[str, int], dict[str, tuple[float, float] | None]] = {
    ("adding", 100): {OFF: (99, 68), ON: (99, 96)},
    ("multiplication", 100): {OFF: (99, 72), ON: (99, 68)},
    ("temporal_order", 100): {OFF: (96, 44), ON: (99, 60)},
    ("temporal_order_3bit", 100): {OFF: (99, 50), ON: (99, 62)},
    ("adding", 150): {OFF: (34, 11), ON: (47, 13)},
    ("multiplication", 150): {OFF: None, ON: None},
    ("temporal_order", 150): {OFF: (51, 30), ON: (72, 42)},
    ("temporal_order_3bit", 150): {OFF: (32, 24), ON: (37, 30)},
}


@dataclass(frozen=True)
class Anchor:
    """A published figure, its source, and the section that quotes it."""

    section: str
    what: str
    figure: str
    source: str


PASCANU = (
    "Pascanu, Mikolov & Bengio (2013), On the difficulty of training recurrent neural networks"
)
CORNN = "Rusch & Mishra (2021), Coupled oscillatory recurrent neural network"
EXPRNN = "Lezcano-Casado & Martínez-Rubio (2019), Cheap orthogonal constraints in neural networks"
IRNN = "Le, Jaitly & Hinton (2015), A simple way to initialize recurrent networks"
ANCHORS = (
    Anchor("Pascanu et al. (2013)", "temporal order, 3-bit, adding, multiplication, memorization;"
           " lengths 50 to 200, at most 5 000 000 updates", "solved in 5 of 5", PASCANU),
    Anchor("Pascanu et al. (2013)", "random permutation, the same", "solved in 2 of 5", PASCANU),
    Anchor("Pascanu et al. (2013)", "temporal order, untouched, on longer sequences",
           "no error up to T = 5000", PASCANU),
    Anchor("Pascanu et al. (2013)", "adding and multiplication, untouched, on longer sequences",
           "no error up to T = 500", PASCANU),
    Anchor("coRNN's adding", "128 units, minibatches of 50, 60 000 updates, T = 500 and 2000",
           "solved (shown as curves)", CORNN),
    Anchor("expRNN's copy memory", "L = 1000, 190 units, minibatches of 128, 4000 updates",
           "solved (shown as curves)", EXPRNN),
    Anchor("Pixels", "60 000 images, sequential, ReLU units from the identity", "93 to 97 %", IRNN),
    Anchor("Pixels", "60 000 images, sequential / permuted, 170 orthogonal units",
           "98.0 % / 94.9 %", EXPRNN),
)  # fmt: skip
