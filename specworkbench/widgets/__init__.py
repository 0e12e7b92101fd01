"""Widgets to look at traces and to decode, usable alone from any notebook. No torch until something is decoded."""

from specworkbench.widgets.acceptance_map import AcceptanceMap, acceptance_map_figure
from specworkbench.widgets.claims_board import ClaimsBoard
from specworkbench.widgets.equivalence_race import EquivalenceRace
from specworkbench.widgets.explorer import Explorer, explore
from specworkbench.widgets.inspector import Inspector
from specworkbench.widgets.live import LiveDecode
from specworkbench.widgets.overlap_playground import OverlapPlayground
from specworkbench.widgets.proposer_lab import ProposerLab
from specworkbench.widgets.round_player import RoundPlayer
from specworkbench.widgets.selection import Selection
from specworkbench.widgets.speedup_explorer import SpeedupExplorer
from specworkbench.widgets.study_browser import StudyBrowser
from specworkbench.widgets.tables import tokens_of
from specworkbench.widgets.token_strip import TokenStrip

__all__ = [
    "AcceptanceMap", "ClaimsBoard", "EquivalenceRace", "Explorer", "Inspector", "LiveDecode", "OverlapPlayground",
    "ProposerLab", "RoundPlayer", "Selection", "SpeedupExplorer", "StudyBrowser", "TokenStrip",
    "acceptance_map_figure", "explore", "tokens_of",
]  # fmt: skip
