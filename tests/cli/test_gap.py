"""`gap`: real short decodings of the embedded target walk from the formula to the measured speedup, exactly."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from specworkbench import analysis
from specworkbench.experiments.bench import Bench
from specworkbench.experiments.plan import Plan, ProposerSpec
from specworkbench.experiments.report import report_of
from specworkbench.experiments.rows import gaps
from specworkbench.trace import load_trace
from specworkbench.workloads import load_prompts
from tests.experiments.toys import strict_json

ROOT = Path(__file__).parents[2]
SPECS = ("draft_model:embedded/draft-s", "ngram", "eagle", "eagle,nodes=8", "dial,alpha=0.7,c=0.1")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """A report on a prompt of each bucket, plainly and with five proposers, a tree and an instrument among them."""
    prompts = tuple(load_prompts("embedded", per_bucket=1))
    proposers = tuple(ProposerSpec.parse(spec) for spec in SPECS)
    plan = Plan("embedded", proposers, prompts, temperatures=(1.0,), max_new_tokens=16, products=False)
    bench = Bench(plan, tmp_path_factory.mktemp("report"))
    bench.run()
    report_of(bench, "embedded").save(bench.out)
    return bench


@pytest.fixture(scope="module")
def folders(bench):
    """{proposer: the folder of its traces}."""
    by_name = {}
    for folder in sorted((bench.out / "traces").iterdir()):
        by_name.setdefault(folder.name.split("-", 1)[1].split("-")[0], folder)
    return by_name


def test_every_configuration_of_a_report_walks_to_its_measured_speedup(command, bench):
    code, out, _ = command("gap", bench.out, "--json")
    told = strict_json(out)
    assert code == 0 and told["bucket"] == "all" and len(told["gaps"]) == len(SPECS)
    measured = {name: None for name in gaps(bench.traces)}
    plain = next(traces for configuration, traces in bench.traces.items() if configuration.plain)
    for explained, (configuration, traces) in zip(told["gaps"], list(bench.traces.items())[1:], strict=True):
        reached = explained["ideal"]["value"] + sum(step["change"]["value"] for step in explained["steps"])
        assert reached == pytest.approx(explained["speedup"]["value"], rel=1e-9)
        if explained["cost_set"] is None:
            plain_ms, ms = (sum(t.sequences[0]["ms_total"] for t in side) for side in (plain, traces))
            tokens, own = (sum(len(t.sequences[0]["token_ids"]) for t in side) for side in (plain, traces))
            assert reached == pytest.approx((plain_ms / tokens) / (ms / own), rel=1e-9)
        assert configuration.name in measured and len(explained["predictions"]) == 4
    draft, _, _, tree, dial = told["gaps"]
    assert dial["cost_set"] == 0.1 and dial["alpha"] == pytest.approx(0.7, abs=0.2)
    assert [explained["alpha"] is None for explained in told["gaps"]] == [
        explained is tree for explained in told["gaps"]
    ]
    assert tree["survival"] == [] and len(tree["steps"]) == 9 and len(draft["steps"]) == 11
    assert draft["survival"][0]["iid"] == pytest.approx(draft["alpha"]) and draft["autocorrelation"][0]["lag"] == 1


def test_a_report_is_a_row_and_a_sentence_for_each_configuration(command, bench):
    code, out, _ = command("gap", bench.out)
    assert code == 0 and out.count("The formula says") == 4 and out.count("A round brings") == 1
    assert "at the cost set, c = 0.1" in out.replace("\n", " ")
    assert "eagle:embedded/eagle gamma 4" in out and "nodes=8" in out


def test_two_traces_are_told_with_all_their_tables(command, folders):
    code, out, _ = command("gap", folders["none"], folders["eagle"])
    assert code == 0
    for word in ("uneven acceptance", "proposer's prefill", "survival, cost-aware", "alpha^j", "The formula says"):
        assert word in out
    files = [next(iter(sorted(folders[name].iterdir()))) for name in ("none", "ngram")]
    code, out, _ = command("gap", *files, "--json")
    (explained,) = strict_json(out)["gaps"]
    assert explained["speedup"]["low"] is None and explained["speedup"]["n"] == 1
    expected = analysis.gap(*map(load_trace, files))
    assert explained["sentence"] == expected.sentence and explained["name"] == str(files[1])


def test_a_bucket_alone_is_what_its_prompts_say(command, refused, folders):
    pair = folders["none"], folders["draft_model"]
    code, out, _ = command("gap", *pair, "--bucket", "code", "--json")
    told = strict_json(out)
    assert code == 0 and told["bucket"] == "code" and told["gaps"][0]["speedup"]["n"] == 1
    assert "there is no bucket 'poems'; there are code, prose, structured" in refused("gap", *pair, "--bucket", "poems")


def test_the_page_holds_a_figure_a_configuration_and_needs_no_network(command, bench, tmp_path):
    code, _, err = command("gap", bench.out, "--html", tmp_path / "gap.html")
    page = (tmp_path / "gap.html").read_text()
    assert code == 0 and "page written to" in err
    assert page.count('class="plotly-graph-div"') == len(SPECS) and page.count("plotly.js v") == 1
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=", page)
    assert page.count("<table>") == len(SPECS) and "prefers-color-scheme: dark" in page


def test_what_is_not_there_or_cannot_be_compared_is_refused(refused, bench, folders, tmp_path):
    plain, own = folders["none"], folders["ngram"]
    assert "there is no folder" in refused("gap", tmp_path / "nowhere")
    assert "there is no trace at" in refused("gap", plain, tmp_path / "nowhere.trace")
    assert "it must be plain decoding" in refused("gap", own, own)
    assert "both traces are plain decoding" in refused("gap", plain, plain)
    assert "there are no traces of a report" in refused("gap", tmp_path)
    assert "is a folder; name a file" in refused("gap", bench.out, "--html", tmp_path)
    first, second = (sorted(folder.iterdir()) for folder in (plain, own))
    assert "no prompt id" in refused("gap", first[0], second[1])


def test_no_torch_is_loaded(bench):
    code = "import sys; from specworkbench.cli import run; run(sys.argv[1:]); assert 'torch' not in sys.modules"
    ran = subprocess.run([sys.executable, "-c", code, "gap", str(bench.out)], capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0 and "The formula says" in ran.stdout, ran.stderr
