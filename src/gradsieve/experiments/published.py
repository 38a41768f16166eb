"""Table 1 of the paper: best and mean accuracy of ten networks in %, by task, length and arm."""

from __future__ import annotations

OFF, ON = "SGD", "skip (Lemma 1)"

# None is the paper's N/A; 99 stands for "> 99 %" too.
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
