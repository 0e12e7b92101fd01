"""`ProposerLab`: several proposers on the same prompts, live, beside plain decoding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets
import traitlets

from specworkbench.errors import InputError
from specworkbench.experiments.comparison import Comparison, comparison_rows, explained
from specworkbench.experiments.files import file_name
from specworkbench.experiments.plan import PLAIN
from specworkbench.paths import EMBEDDED
from specworkbench.trace import Trace
from specworkbench.widgets.explorer import Explorer, sentence_of
from specworkbench.widgets.lab_controls import LabControls
from specworkbench.widgets.lab_progress import LabWatch, Lanes
from specworkbench.widgets.lab_words import fastest, named, table_html, time_figure
from specworkbench.widgets.live import PROMPT
from specworkbench.widgets.page_repairs import PageRepairs, live_figure, redraw
from specworkbench.widgets.running import Running, save_new, told
from specworkbench.widgets.selection import Selection

_WIDE = {"width": "min(26em, 98%)"}
_ROW = {"flex_flow": "row wrap", "align_items": "center"}
_INK = "color: var(--jp-ui-font-color1, inherit); max-width: 64em; line-height: 1.45"


class ProposerLab(Running):
    """Controls, Run and Stop, a bar a proposer; then a row a proposer, where the time goes, and the tokens of one.

    target: a model's name, or a loaded one. proposers: written as `--proposer` takes them; prompts: ids of shipped
    ones; both are only what is chosen at first. `controls` has every setting. After a run `traces` are the traces by
    label, plain decoding as "none", `rows` what is said of each (`comparison_rows`), `failures` why the others have
    none, and `chosen` whose tokens are shown; `selection` is the token, for other panels to share.

    A proposer that fails says why in its row, and the others run on. Decoding runs in a thread, so that Stop is heard;
    `wait()` waits for it. decode: stands in for the engine, `decode(asked, watch)` to the traces, asked being a
    `Comparison`, and watch a `Watch`.

    >>> lab = ProposerLab(proposers=["ngram", "suffix"], prompts=["code-01", "prose-01"])
    >>> lab.controls.temperature.value = 0.0
    >>> lab.asked.proposers, [prompt.id for prompt in lab.asked.prompts], lab.asked.temperature
    (('ngram', 'suffix'), ['code-01', 'prose-01'], 0.0)
    """

    traces = traitlets.Dict()
    rows = traitlets.List()
    failures = traitlets.Dict()
    chosen = traitlets.Unicode("")

    def __init__(
        self,
        target: Any = EMBEDDED,
        *,
        proposers: Iterable[str] | None = None,
        prompts: Iterable[str] | None = None,
        text: str = PROMPT,
        decode: Callable[[Comparison, Any], Mapping[str, Trace]] | None = None,
        **options: Any,
    ):
        super().__init__(**options)
        self._decode = decode or self._decode_with_engine
        self.controls, self.lanes = LabControls(target, text), Lanes()
        if proposers is not None:
            self.controls.choose(proposers)
        if prompts is not None:
            self.controls.prompt_picker.pick(tuple(prompts))
        self._make_results()
        run_row = widgets.Box([self.run_button, self.stop_button, self.status], layout=_ROW)
        self.children = [self.controls, run_row, self.message, self.lanes, self.table, self.results, PageRepairs()]
        self._show()

    def _make_results(self) -> None:
        self.table, self.words = widgets.HTML(), widgets.HTML()
        self.figure = live_figure(time_figure({}))
        self.chooser = widgets.Dropdown(description="look at", layout={"width": "min(34em, 98%)"})
        self.chooser.observe(self._picked, "value")
        self.selection = Selection()
        self.explorer = Explorer(selection=self.selection)
        self.file_name = widgets.Text("lab.trace", description="file", layout=_WIDE)
        self.save_button = widgets.Button(description="Save this trace", icon="save", layout={"width": "11em"})
        self.folder_name = widgets.Text("lab", description="folder", layout=_WIDE)
        self.save_all_button = widgets.Button(description="Save all traces", icon="save", layout={"width": "11em"})
        self.save_button.on_click(lambda _button: self.save())
        self.save_all_button.on_click(lambda _button: self.save_all())
        saving = [self.file_name, self.save_button, self.folder_name, self.save_all_button]
        self.save_row = widgets.Box(saving, layout=_ROW)
        self.results = widgets.VBox([self.figure, self.chooser, self.words, self.explorer, self.save_row])

    @property
    def asked(self) -> Comparison:
        """The comparison as the controls stand. Raises `InputError` for one without proposers or prompts."""
        return self.controls.asked

    @property
    def trace(self) -> Trace | None:
        """The trace that is looked at."""
        return self.traces.get(self.chosen)

    def save(self) -> None:
        """Save the trace that is looked at under the name in the field; an existing file is not overwritten."""
        self._saved(lambda: save_new(self.trace, self.file_name.value))

    def save_all(self) -> None:
        """Save every trace in the folder named; one that holds traces already is refused.

        `specworkbench gap FOLDER` reads it, as it does a report's.
        """
        self._saved(lambda: save_all(self.traces, self.folder_name.value))

    def to_html(self) -> str:
        """Table, explanation and tokens as HTML that needs neither scripts nor a kernel, for exports."""
        tokens = self.explorer.to_html() if self.trace else ""
        return self.message.value + self.table.value + self.words.value + tokens

    # ---------------------------------------------------------------- running

    def _begin(self) -> Callable[[], None]:
        asked = self.asked
        watch = LabWatch(self.lanes, asked, lambda: self.stopping, partial(self.report, always=True), told)
        self.report("loading the models, then decoding", always=True)
        return partial(self._decode_and_show, asked, watch)

    def _decode_and_show(self, asked: Comparison, watch: LabWatch) -> None:
        traces = dict(self._decode(asked, watch))
        self.traces, self.failures, self.rows = traces, watch.failures, comparison_rows(traces)
        ended = "stopped: figures are those of prompts that were finished" if self.stopping else "done"
        self.report(f"{ended}; {_counted(asked)}", always=True)
        self._show()

    def _decode_with_engine(self, asked: Comparison, watch: LabWatch) -> Mapping[str, Trace]:
        """Decode with the engine, which needs torch: it is imported here and no earlier."""
        watch.doing("loading torch")
        from specworkbench.experiments.side_by_side import decode_side_by_side

        return decode_side_by_side(asked, watch, self.loaded)

    # ---------------------------------------------------------------- display

    def _show(self) -> None:
        """Everything that a run leaves behind."""
        self.table.value = table_html(self.rows, self.failures)
        self.results.layout.display = None if self.traces else "none"
        redraw(self.figure, time_figure(self.traces))
        before = self.chosen
        self.chooser.options = [(named(label), label) for label in self.traces]
        self.chosen = fastest(self.rows) or next(iter(self.traces), "")
        if self.chosen == before:
            self._look()

    def _picked(self, change: Any) -> None:
        if self.traces.get(change["new"]) is not self.selection.trace:
            self.chosen = change["new"] or ""

    @traitlets.observe("chosen")
    def _look(self, _change: Any = None) -> None:
        """Show the tokens of the row that is chosen, and where its time goes."""
        self.chooser.value = self.chosen if self.trace else None
        self.words.value = self._explained() if self.trace else ""
        self.selection.show(self.trace)

    def _explained(self) -> str:
        if self.chosen == PLAIN:
            return f'<p style="{_INK}">Plain decoding: what the others are measured against.</p>'
        return f'<p style="{_INK}">{escape(explained(self.traces.get(PLAIN), self.trace))}</p>'

    def _saved(self, save: Callable[[], Path]) -> None:
        try:
            path = save()
        except (InputError, OSError) as error:
            self.say(sentence_of(error))
        else:
            self.say("")
            self.report(f"saved as {path}", always=True)


def save_all(traces: Mapping[str, Trace], folder: str) -> Path:
    """Save traces by label below a folder, as a report lays them out; the folder's whole path.

    Raises `InputError` where there is none, the folder holds traces already, or it cannot be written.
    """
    if not traces:
        raise InputError("there is no trace yet; press Run first")
    if not folder.strip():
        raise InputError("the folder has no name; type one, such as lab")
    root = Path(folder).expanduser()
    if (root / "traces").exists():
        raise InputError(f"there are traces in {str(root)!r} already; choose another folder")
    for number, (label, trace) in enumerate(traces.items()):
        save_new(trace, str(root / "traces" / file_name(number, label) / "prompts.trace"))
    return root.resolve()


def _counted(asked: Comparison) -> str:
    proposers, prompts = len(asked.labels) - 1, len(asked.prompts)
    return f"{proposers} proposer{'s' * (proposers != 1)} on {prompts} prompt{'s' * (prompts != 1)}"
