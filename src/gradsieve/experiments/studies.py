"""The studies that `gradsieve reproduce` knows."""

from __future__ import annotations

from gradsieve.experiments import (
    ablation,
    agreement,
    beyond,
    figure1,
    figure2,
    rescue,
    table1,
)
from gradsieve.experiments.study import Study

STUDIES: dict[str, Study] = {
    module.STUDY.name: module.STUDY
    for module in (figure1, figure2, agreement, table1, ablation, rescue, beyond)
}
ARMS = tuple(dict.fromkeys(arm.name for study in STUDIES.values() for arm in study.arms))
