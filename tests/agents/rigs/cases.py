"""The scenarios of all rigs, as parameters of a test."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.rigs import RIGS
from tests.agents.rigs.base import Rig, Scenario


def cases(condition: Callable[[Rig, Scenario], object]) -> Any:
    chosen = [
        (rig, scenario) for rig in RIGS for scenario in rig.scenarios if condition(rig, scenario)
    ]
    ids = [f"{rig.provider}: {scenario.kind}" for rig, scenario in chosen]
    return pytest.mark.parametrize(("rig", "scenario"), chosen, ids=ids)


def each_rig(condition: Callable[[Rig], object] = bool) -> Any:
    return pytest.mark.parametrize(
        "rig", list(filter(condition, RIGS)), ids=lambda rig: rig.provider
    )
