"""What is asked of a comparison, as controls: target, proposers, rule, sampling, gamma, prompts, length, engine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ipywidgets as widgets

from specworkbench.experiments.comparison import Comparison
from specworkbench.paths import EMBEDDED
from specworkbench.widgets.lab_prompts import PromptPicker
from specworkbench.widgets.offered import controller_options, proposers_for, rule_options, targets
from specworkbench.widgets.page_repairs import GROUP

_WIDE = {"width": "min(30em, 98%)"}
_HALF = {"width": "min(24em, 98%)"}
_STYLE = {"description_width": "9em"}
_WHOLE = {"width": "auto"}
_LONG = {"width": "min(40em, 98%)"}
_ROW = {"flex_flow": "row wrap", "align_items": "center"}
_COLUMNS = {"grid_template_columns": "repeat(auto-fill, minmax(min(25em, 98%), 1fr))", "width": "100%"}
"""As many columns of equal width as the page has room for."""


class LabControls(widgets.VBox):
    """Every setting of a `Comparison`, labelled; `asked` is the comparison as the controls stand.

    target: a model's name, or a loaded one, which then is the only one.
    """

    def __init__(self, target: Any = EMBEDDED, text: str = "", **options: Any):
        self.given = None if isinstance(target, str) else target
        name = target if isinstance(target, str) else target.name
        self._make_models(name)
        self._make_rule_and_sampling()
        self.prompt_picker = PromptPicker(name, text)
        self.boxes: dict[str, widgets.Checkbox] = {}
        self.box_row = widgets.GridBox(layout=_COLUMNS)
        self.more = widgets.Textarea(
            description="more proposers", rows=2, layout={"width": "min(40em, 98%)"}, style=_STYLE,
            placeholder="one a line: NAME:WEIGHTS,SETTING=VALUE, such as layer_skip,layers=2",
        )  # fmt: skip
        groups = (
            ("Target", [self.target, self.engine]),
            ("Proposers", [self.box_row, self.more]),
            ("Rule and sampling, of target and proposers alike", self._rule_and_sampling),
            ("Prompts", [self.prompt_picker, self.max_new_tokens, self.seed, self.chat, self.record]),
        )
        super().__init__([_group(*group) for group in groups], **options)
        self.target.observe(lambda change: self._suit(change["new"]), "value")
        self._suit(name)

    def choose(self, proposers: Iterable[str]) -> None:
        """Choose these and no others, written as `--proposer` takes them."""
        wanted = list(dict.fromkeys(proposers))
        for spec, box in self.boxes.items():
            box.value = spec in wanted
        self.more.value = "\n".join(spec for spec in wanted if spec not in self.boxes)

    @property
    def proposers(self) -> tuple[str, ...]:
        """Those chosen, then those typed."""
        typed = (line.strip() for line in self.more.value.splitlines())
        ticked = (spec for spec, box in self.boxes.items() if box.value)
        return tuple(dict.fromkeys(spec for spec in (*ticked, *typed) if spec))

    @property
    def asked(self) -> Comparison:
        """The comparison as the controls stand. Raises `InputError` for one without proposers or prompts."""
        rule = ",".join(filter(None, [self.rule.value, self.rule_settings.value.strip()]))
        controller = ",".join(filter(None, [self.controller.value, self.controller_settings.value.strip()]))
        return Comparison(
            prompts=self.prompt_picker.prompts,
            proposers=self.proposers,
            target=self.given or self.target.value.strip(),
            rule=rule or None,
            controller=controller,
            gamma=self.gamma.value,
            temperature=self.temperature.value,
            top_k=self.top_k.value,
            top_p=self.top_p.value,
            min_p=self.min_p.value,
            max_new_tokens=self.max_new_tokens.value,
            seed=self.seed.value,
            chat=self.chat.value,
            engine=self.engine.value,
            capture="top-k" if self.record.value else "none",
        )

    def _make_models(self, name: str) -> None:
        self.target = widgets.Combobox(
            value=name, options=targets(), description="target", layout=_WIDE, style=_STYLE, continuous_update=False,
            placeholder="a name, a hub id, a folder or a GGUF file", disabled=self.given is not None,
        )  # fmt: skip
        self.engine = widgets.Dropdown(
            options=[("eager", "eager"), ("compiled (tens of seconds at first)", "compiled")], description="engine",
            layout=_WIDE, style=_STYLE, disabled=self.given is not None,
        )  # fmt: skip

    def _make_rule_and_sampling(self) -> None:
        def slider(name: str, value: float, low: float, high: float, step: float) -> widgets.FloatSlider:
            return widgets.FloatSlider(
                value, min=low, max=high, step=step, description=name, layout=_HALF, style=_STYLE
            )

        self.rule = widgets.Dropdown(options=rule_options(), description="rule", layout=_LONG, style=_STYLE)
        self.rule_settings = _settings("rule settings", "such as leniency=0.5")
        self.controller = widgets.Dropdown(
            options=controller_options(), description="controller", layout=_LONG, style=_STYLE
        )
        self.controller_settings = _settings("controller settings", "such as keep=0.8")
        self.gamma = widgets.IntSlider(4, 1, 12, description="gamma, at most", layout=_HALF, style=_STYLE)
        self.temperature = slider("temperature", 1.0, 0.0, 2.0, 0.05)
        self.top_k = widgets.BoundedIntText(
            0, 0, 2**31 - 1, description="top-k (0: all)", layout=_HALF, style=_STYLE
        )
        self.top_p = slider("top-p (1: all)", 1.0, 0.01, 1.0, 0.01)
        self.min_p = slider("min-p (0: all)", 0.0, 0.0, 1.0, 0.01)
        self._rule_and_sampling = [
            self.rule, self.rule_settings, self.controller, self.controller_settings, self.gamma, self.temperature,
            self.top_k, self.top_p, self.min_p,
        ]  # fmt: skip
        self.max_new_tokens = widgets.IntSlider(
            64, 8, 512, 8, description="max new tokens", layout=_HALF, style=_STYLE
        )
        self.seed = widgets.BoundedIntText(0, 0, 2**31 - 1, description="seed", layout=_HALF, style=_STYLE)
        self.chat = widgets.Checkbox(False, description="chat template", indent=False, layout=_HALF)
        self.record = widgets.Checkbox(
            False, description="record p and q (slows every round)", indent=False, layout=_HALF,
            tooltip="The most probable tokens of both rows in the trace: the figure of a token needs them",
        )  # fmt: skip

    def _suit(self, target: str) -> None:
        """Offer what there is for a target; what was ticked stays so, where it is still there."""
        ticked = set(self.proposers) if self.boxes else {"draft_model:embedded/draft-m", "ngram"}
        self.boxes = {
            spec: widgets.Checkbox(spec in ticked, description=words, tooltip=spec, indent=False, layout=_WHOLE)
            for words, spec in proposers_for(target).items()
        }
        self.box_row.children = list(self.boxes.values())
        self.prompt_picker.suit(target)


def _settings(name: str, such_as: str) -> widgets.Text:
    return widgets.Text(description=name, placeholder=such_as, layout=_HALF, style={"description_width": "10.5em"})


def _group(title: str, controls: list[widgets.Widget]) -> widgets.VBox:
    heading = '<b style="color: var(--jp-ui-font-color1, inherit)">{}</b>'
    group = widgets.VBox([widgets.HTML(heading.format(title)), widgets.Box(controls, layout=_ROW)])
    group.add_class(GROUP)
    return group
