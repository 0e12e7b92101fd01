"""A Ray cluster of two nodes on this machine: every cell once, a killed worker's cell again, faults as sentences."""

import os
import signal
import sys
from dataclasses import replace

import pytest

from specworkbench.errors import InputError
from specworkbench.experiments.study import read_study, run_study
from specworkbench.experiments.study.cluster import Cluster
from specworkbench.experiments.study.runner import Runner
from tests.experiments.study.cases import toy_study


def test_without_ray_a_sentence_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"Ray is not installed: pip install 'specworkbench\[cluster\]'"):
        Cluster("auto").__enter__()


def test_a_worker_has_a_core():
    with pytest.raises(InputError, match="cpus_per_worker is 0"):
        Cluster("auto", cpus_per_worker=0)


NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def nodes():
    """A cluster of two nodes with a core each."""
    pytest.importorskip("ray", reason="Ray is not installed (the extra 'cluster'); make test-cluster")
    from ray.cluster_utils import Cluster as Nodes

    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    nodes = Nodes(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
    nodes.add_node(**NODE)
    yield nodes
    nodes.shutdown()


@pytest.fixture
def address(nodes):
    return nodes.address


@pytest.mark.cluster
def test_every_cell_is_decoded_once_by_workers_on_two_nodes(toys, tmp_path, address):
    study = toy_study(toys, proposer="ngram", gamma=[1, 2, 3, 4])
    with Cluster(address) as executor:
        assert executor.places == 2 and "2 machines" in executor.kind
        pids = {executor.ask(place, "greet").result()["pid"] for place in range(2)}
        assert len(pids | {os.getpid()}) == 3
        runner, seen = Runner(study, tmp_path, executor), []
        plan = runner.plan()
        assert "by 2 Ray workers" in "\n".join(plan.lines()) and plan.forecast.basis
        seen = [row["id"] for row in runner.run(plan)]
    assert len(seen) == len(set(seen)) == 4
    table = read_study(tmp_path)
    assert (table["status"] == "finished").all() and (table["threads"] == 1).all()
    assert len(list(tmp_path.glob("cells/*/*.trace"))) == 8
    again = []
    run_study(study, tmp_path, ray=address, on_row=again.append)
    assert again == []


@pytest.mark.cluster
def test_a_killed_workers_cell_is_decoded_again_and_none_is_lost_or_repeated(toys, tmp_path, address):
    study = toy_study(toys, proposer="ngram", gamma=[1, 2, 3], seed=[0, 1], max_new_tokens=100)
    told, seen = [], []
    with Cluster(address) as executor:
        pids = [executor.ask(place, "greet").result()["pid"] for place in range(2)]
        runner = Runner(study, tmp_path, executor)
        for row in runner.run(runner.plan(), tell=told.append):
            if not seen:
                os.kill(pids[0], signal.SIGKILL)
            seen.append(row["id"])
    assert len(told) == 1 and "decoded again" in told[0]
    assert len(seen) == len(set(seen)) == 6
    assert (read_study(tmp_path)["status"] == "finished").all()


@pytest.mark.cluster
def test_a_node_is_lost_and_the_others_finish_the_study(toys, tmp_path, nodes):
    study = toy_study(toys, proposer="ngram", gamma=[1, 2, 3], seed=[0, 1], max_new_tokens=100)
    third, seen = nodes.add_node(**NODE), []
    with Cluster(nodes.address) as executor:
        assert executor.places == 3
        runner = Runner(study, tmp_path, executor)
        for row in runner.run(runner.plan()):
            if not seen:
                nodes.remove_node(third, allow_graceful=False)
            seen.append(row["id"])
    assert len(seen) == len(set(seen)) == 6
    assert (read_study(tmp_path)["status"] == "finished").all()


@pytest.mark.cluster
def test_the_same_cell_has_the_same_output_wherever_it_is_decoded(toys, tmp_path, address):
    from specworkbench.trace import load_trace

    study = toy_study(toys, proposer="ngram", gamma=2, temperature=1.0)
    outputs = []
    for name, options in (("here", {}), ("there", {"ray": address})):
        run_study(study, tmp_path / name, **options)
        (path,) = (tmp_path / name).glob("cells/*/speculative.trace")
        outputs.append([sequence["token_ids"] for sequence in load_trace(path).sequences])
    assert outputs[0] == outputs[1]


@pytest.mark.cluster
def test_what_a_cluster_cannot_give_is_a_sentence(toys, tmp_path, address):
    with (
        pytest.raises(InputError, match="no machine of the Ray cluster has 64 cores"),
        Cluster(address, cpus_per_worker=64),
    ):
        pass
    with pytest.raises(InputError, match="no cell of the study can be decoded"):
        run_study(replace(toy_study(toys), target=("/no/such/folder",)), tmp_path / "out", ray=address)
    for nobody in ("127.0.0.1:1", "nonsense"):
        with pytest.raises(InputError, match=f"cannot join the Ray cluster at '{nobody}'"), Cluster(nobody):
            pass
