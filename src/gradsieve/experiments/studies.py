"""The studies that `gradsieve reproduce` knows."""

from __future__ import annotations

from gradsieve.experiments import (
    ablation,
    agreement,
    anchors,
    beyond,
    figure1,
    figure2,
    leave_it_on,
    rescue,
    table1,
    trials,
)
from gradsieve.experiments.study import Study

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (
        figure1, figure2, agreement, table1, ablation, rescue, beyond, trials, leave_it_on,
        anchors,
    )
}  # fmt: skip
ARMS = tuple(dict.fromkeys(name for study in STUDIES.values() for name in study.names))
TASKS = tuple(dict.fromkeys(task for study in STUDIES.values() for task in study.tasks))
