"""What the tests of the round player share: toy runs with their plain ones, and its script in node with a clock."""

from __future__ import annotations

import json
from pathlib import Path

from specworkbench.engine import Decoder, DecodeSettings
from specworkbench.engine.proposers import TreeDraftProposer
from specworkbench.equivalence.toys import toy_model
from specworkbench.widgets import round_player
from specworkbench.widgets.player_rounds import player_rounds
from tests.widgets.node import node_runner
from tests.widgets.traces import spoken

FOLDER = Path(round_player.__file__).parent
TRACE = spoken()
PLAIN = spoken(proposer="none")
PLAYED = player_rounds(TRACE, 1, PLAIN)


def steps_of(played, number):
    return [step for step in played["steps"] if step["round"] == number]


def kinds_of(played, number):
    return [step["kind"] for step in steps_of(played, number)]


def tree_trace(sampled):
    branching = "sampled" if sampled else "top-k"
    proposer = TreeDraftProposer(toy_model(6, seed=1, layers=1), nodes=8, width=3, branching=branching)
    decoder = Decoder(toy_model(6), proposer, settings=DecodeSettings(3, 60), seed=3, capture="top-k")
    decoder.run("abcab")
    return decoder.trace()


def state_of(player):
    """The traits as they travel to the browser."""
    state = player.get_state()
    return json.loads(json.dumps({name: state[name] for name in ("played", "step", "message", "marks")}))


CLOCK = """
let now = 0, due = [], number = 0;
globalThis.performance = { now: () => now };
const later = (kind) => (callback, delay = 16) => {
  due.push({ id: ++number, at: now + delay, callback, kind });
  return number;
};
globalThis.requestAnimationFrame = later("frame");
globalThis.setTimeout = later("timer");
globalThis.cancelAnimationFrame = globalThis.clearTimeout = (id) => { due = due.filter((own) => own.id !== id); };
function pass(ms) {
  for (const end = now + ms; ; ) {
    const next = due.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
    if (!next) { now = end; return; }
    due = due.filter((own) => own !== next);
    now = next.at;
    next.callback();
  }
}
function shown(state, still = false) {
  const document = page();
  globalThis.matchMedia = () => ({ matches: still });
  const model = new Model(state);
  const el = document.createElement("div");
  const leave = it.default.render({ model, el });
  const look = (name) => el.find((node) => node.className.split(" ").includes(name));
  const control = (label) => el.find((node) => node.attributes["aria-label"] === label)[0];
  return { model, el, leave, look, control, stage: look("swbp-stage")[0] };
}
"""


def player_in_node(folder):
    """`run(code, **values)` of `node_runner`, over the player's script, with a clock."""
    script = "\n".join((FOLDER / name).read_text(encoding="utf-8") for name in round_player._SCRIPTS)
    return node_runner(folder, script, CLOCK)
