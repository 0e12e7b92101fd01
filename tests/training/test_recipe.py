"""`train`: losses are what they say, every kind learns and comes back from disk, and bad input gets a sentence."""

import json
import math

import pytest

# ruff: noqa: E402 - imported only where torch is installed
torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'engine')")

from specworkbench.engine import load_model, make_proposer
from specworkbench.errors import InputError
from specworkbench.training import recipe as recipes
from specworkbench.training.heads import row_loss
from specworkbench.training.make_heads import make_eagle, make_medusa, reduced_vocabulary
from specworkbench.training.recipe import KINDS, Recipe
from specworkbench.training.structured import document
from specworkbench.training.text import read_text

EMBEDDED = load_model("embedded")
SMALL = dict(minutes=0.03, windows=12, length=64, batch_tokens=256, guesses=2, width=32)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for i in range(40):
        (folder / f"{i:02d}.txt").write_text(document("train", i)[1])
    return folder


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """One folder of features for all kinds."""
    return tmp_path_factory.mktemp("work")


def test_the_loss_is_the_cross_entropy_with_the_whole_row_where_all_of_it_is_given():
    generator = torch.Generator().manual_seed(0)
    logits, row = torch.randn(3, 6, generator=generator), torch.rand(3, 6, generator=generator)
    row = row / row.sum(-1, keepdim=True)
    probs, top = row.topk(6, dim=-1)
    expected = torch.nn.functional.cross_entropy(logits, row)
    assert row_loss(logits, top, probs, None).item() == pytest.approx(expected.item(), rel=1e-5)


def test_in_a_reduced_vocabulary_the_loss_is_that_of_the_row_without_the_rest():
    logits, row = torch.tensor([[0.3, -1.0]]), torch.tensor([[0.5, 0.2, 0.3]])
    place = torch.tensor([0, -1, 1])
    probs, top = row.topk(3, dim=-1)
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([[0.5, 0.3]]) / 0.8)
    assert row_loss(logits, top, probs, place).item() == pytest.approx(expected.item(), rel=1e-5)


def test_medusa_begins_as_the_targets_own_head():
    hidden = EMBEDDED.forward(torch.arange(5, 15), EMBEDDED.new_cache(), layers=(-1,))
    made = make_medusa(EMBEDDED, 2).requires_grad_(False)
    assert torch.allclose(made(hidden.hidden[-1], 1), hidden.logits, atol=1e-4)


def test_a_reduced_vocabulary_is_of_the_tokens_given_most_often_in_order():
    assert reduced_vocabulary(torch.tensor([1.0, 9.0, 3.0, 7.0]), 2).tolist() == [1, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_trained_written_and_decoded_with(kind, texts, work, tmp_path, monkeypatch):
    monkeypatch.setattr(recipes, "NEW_TOKENS", 8)
    monkeypatch.setattr(recipes.heldout_traces, "__defaults__", (2,))
    recipe = Recipe(kind, tmp_path / "out", work, data=(str(texts),), layers=(3, 6, -1), **SMALL)
    traces = recipes.train(recipe)
    assert set(traces) == {0.0, 1.0} and all(trace.rounds["proposed"].sum() for trace in traces.values())
    name = "draft_model" if kind == "draft" else kind
    described = make_proposer(name, target=EMBEDDED, draft=str(tmp_path / "out")).describe()
    assert described["draft"]["name"] == str(tmp_path / "out")
    told = json.loads((tmp_path / "out" / "training.json").read_text())
    assert told["recipe"]["kind"] == kind and told["steps"] > 0
    assert set(told["heldout"]) == {"temperature 0", "temperature 1"}
    assert (work / kind / "checkpoint.pt").exists() and not list(tmp_path.rglob("*.tmp"))


def test_a_reduced_vocabulary_is_trained_written_and_never_left(texts, work, tmp_path, monkeypatch):
    monkeypatch.setattr(recipes, "NEW_TOKENS", 16)
    monkeypatch.setattr(recipes.heldout_traces, "__defaults__", (2,))
    recipe = Recipe(
        "eagle", tmp_path / "out", work / "reduced", data=(str(texts),), layers=(3, 6, -1), vocabulary=300, **SMALL
    )
    traces = recipes.train(recipe)
    head = make_proposer("eagle", target=EMBEDDED, draft=str(tmp_path / "out")).head
    assert head.target_ids.shape == (300,)
    positions = traces[1.0].positions
    assert set(positions[positions["node"] >= 0]["token"]) <= set(head.target_ids.tolist())


def test_training_lowers_the_loss(texts, work):
    from specworkbench.training.heads import head_losses
    from specworkbench.training.trainer import Settings, Trainer

    text = read_text([str(texts)], EMBEDDED, 64)
    recipe = Recipe("eagle", work / "unused", work, data=(str(texts),), **SMALL)
    store, _ = recipes.stores(recipe, EMBEDDED, text, (3, 6, -1))
    head, losses = make_eagle(EMBEDDED, (3, 6, -1)), head_losses(2)
    batch = store.batch(0, 4, 64)
    with torch.no_grad():
        before = losses({"eagle": head}, batch)["eagle"].item()
    settings = Settings(steps=20, batch_tokens=256, length=64, long_length=64, long_share=0.0, other_rate=2e-3)
    Trainer({"eagle": head}, store, settings, work / "lower", loss_of=losses).run()
    with torch.no_grad():
        after = losses({"eagle": head}, batch)["eagle"].item()
    assert math.isfinite(after) and after < before - 0.3


@pytest.mark.parametrize(
    "wrong, said", [({"kind": "lstm"}, "choose one of"), ({"minutes": 0}, "minutes is 0"), ({"length": 8}, "above 31")]
)
def test_settings_out_of_range_are_refused(tmp_path, wrong, said):
    with pytest.raises(InputError, match=said):
        Recipe(**{"kind": "eagle", "out": tmp_path, "work": tmp_path, **wrong})


def test_text_that_cannot_be_used_is_refused_with_a_sentence(tmp_path):
    short, binary, lines = (tmp_path / name for name in ("short.txt", "binary.txt", "lines.jsonl"))
    short.write_text("too little")
    binary.write_bytes(b"\xff\xfe\xff")
    lines.write_text('{"text": "one"}\n{"prompt": "two"}\n')
    expected = {short: "more text", binary: "cannot read", lines: 'line 2.*no "text"', tmp_path / "no": "cannot read"}
    for path, said in expected.items():
        with pytest.raises(InputError, match=said):
            read_text([str(path)], EMBEDDED, 64)


def test_json_lines_are_documents_and_held_out_ones_are_not_trained_on(tmp_path):
    path = tmp_path / "lines.jsonl"
    documents = [f"document number {i} says {i * i} " * 20 for i in range(120)]
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    text = read_text([str(path)], EMBEDDED, 64)
    train, heldout = (EMBEDDED.tokenizer.decode(part.streams["text"]) for part in (text.train, text.heldout))
    held = [i for i in range(120) if f"number {i} says" in heldout]
    assert 0 < len(held) < 30 and not any(f"number {i} says" in train for i in held)
