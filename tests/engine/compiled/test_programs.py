"""Programs are kept on disk under what they depend on, and made anew where damaged; what cannot be is a sentence."""

import pytest
import torch

from specworkbench.engine.compiled.functions import CompiledFunction
from specworkbench.engine.compiled.graphs import Graph
from specworkbench.engine.compiled.programs import Programs, _shared, programs_dir
from specworkbench.engine.loading import load_model
from specworkbench.errors import InputError
from tests.engine.toys import toy_model

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """An empty folder of programs, and none loaded."""
    monkeypatch.setenv("SPECWORKBENCH_CACHE", str(tmp_path))
    _shared.cache_clear()
    yield programs_dir()
    _shared.cache_clear()


def doubled(programs: Programs, describe: str = "") -> CompiledFunction:
    return CompiledFunction(lambda x: 2 * x, "double", {2}, programs, describe)


def test_a_program_is_compiled_once_and_then_loaded_and_made_anew_where_it_is_damaged(kept):
    first, second, third, other = (Programs() for _ in range(4))
    assert torch.equal(doubled(first)(X), 2 * X)
    assert torch.equal(doubled(second)(X), 2 * X)
    assert ([cost.kept for cost in first.costs], [cost.kept for cost in second.costs]) == ([False], [True])
    (package,) = kept.iterdir()
    package.write_bytes(b"not a package")
    _shared.cache_clear()
    assert torch.equal(doubled(third)(X), 2 * X)
    assert [cost.kept for cost in third.costs] == [False]
    doubled(other, "of something else")(X)
    assert [cost.kept for cost in other.costs] == [False] and len(list(kept.iterdir())) == 2


def test_only_expected_sizes_are_compiled(kept):
    programs = Programs()
    assert torch.equal(doubled(programs)(X[:1]), 2 * X[:1])
    assert programs.costs == [] and not kept.exists()


def test_no_compiler_is_a_sentence(kept, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(InputError, match="needs a C\\+\\+ compiler and there is no no-such-compiler"):
        doubled(Programs())(X)
    with pytest.raises(InputError, match="no-such-compiler"):
        toy_model(5).compile()


def test_an_engine_or_a_model_that_is_not_known_is_a_sentence():
    with pytest.raises(InputError, match="no engine 'fast'; choose one of eager, compiled"):
        load_model("embedded/draft-s", engine="fast")
    with pytest.raises(InputError, match="the engine compiled does not know embedded/draft-s"):
        load_model("embedded/draft-s", engine="compiled", fused=False, dtype="bfloat16")


def test_a_graph_copies_in_what_changes_replays_and_hands_out_copies():
    """The capture is a stand-in that runs the function again on the same memory, as a graph does."""
    ran = []

    def capture(run):
        outputs = run()

        def replay():
            ran.append(1)
            for output, again in zip(outputs, run(), strict=True):
                output.copy_(again)

        return replay, outputs

    fixed = torch.tensor([10.0])
    graph = Graph(lambda x, y: (x + fixed, x * y), (torch.zeros(2), torch.zeros(2)), capture)
    one = graph(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    fixed.fill_(20.0)
    other = graph(torch.tensor([5.0, 6.0]), torch.tensor([1.0, 1.0]))
    assert [output.tolist() for output in one] == [[11.0, 12.0], [3.0, 8.0]]
    assert [output.tolist() for output in other] == [[25.0, 26.0], [5.0, 6.0]]
    assert len(ran) == 2
