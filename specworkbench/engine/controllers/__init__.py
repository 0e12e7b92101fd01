"""Controllers: who chooses, round by round, how many guesses are asked for."""

from __future__ import annotations

from specworkbench.engine.contracts import Proposer
from specworkbench.engine.controllers.auto_off import AutoOffController
from specworkbench.engine.controllers.base import Controller
from specworkbench.engine.controllers.fixed import BatchController, ConstantController
from specworkbench.engine.controllers.optimal import OptimalController
from specworkbench.engine.controllers.reactive import ConfidenceController, HeuristicController
from specworkbench.engine.settings import parse_settings, split_settings
from specworkbench.errors import InputError

CONTROLLERS: dict[str, type[Controller]] = {
    controller.name: controller
    for controller in (
        ConstantController,
        HeuristicController,
        ConfidenceController,
        OptimalController,
        AutoOffController,
        BatchController,
    )
}


def make_controller(text: str) -> Controller:
    """The controller by name, with settings if it has any, as NAME[,SETTING=VALUE...], such as `optimal,keep=0.8`.

    Raises `InputError` for an unknown controller or setting, and for a setting out of range.

    >>> make_controller("optimal,keep=0.8").name
    'optimal'
    """
    name, settings = split_settings(text)
    if name not in CONTROLLERS:
        raise InputError(f"there is no controller {name!r}; choose one of {', '.join(CONTROLLERS)}")
    return CONTROLLERS[name](**parse_settings(CONTROLLERS[name], settings))


def check_controls(controller: Controller, proposer: Proposer) -> None:
    """Raises `InputError` where a draft is to stop in doubt and the proposer tells none."""
    if controller.stop_below and (proposer.drafts_trees or not proposer.tells_doubt) and proposer.name != "none":
        trees = " where it drafts a tree" if proposer.drafts_trees else ""
        raise InputError(
            f"the controller {controller.name} stops a draft in doubt, and the proposer {proposer.name} tells none"
            f"{trees}; choose another controller, such as heuristic"
        )


__all__ = [
    "CONTROLLERS",
    "AutoOffController",
    "BatchController",
    "ConfidenceController",
    "ConstantController",
    "Controller",
    "HeuristicController",
    "OptimalController",
    "check_controls",
    "make_controller",
]
