"""Sums over a weight, in lanes or as it is, are its product; copies in lanes follow their weights, into free memory."""

import psutil
import pytest
import torch
from torch.nn import functional

from specworkbench.engine.compiled import lanes
from specworkbench.engine.compiled.lanes import Lanes, in_lanes, summed
from specworkbench.engine.products import ROWS, Product


@pytest.mark.parametrize("out", [1, 7, 32, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", [lambda weight: weight, in_lanes])
def test_the_sums_are_the_product(out, dtype, layout):
    torch.manual_seed(out)
    weight, bias, x = (torch.randn(*shape, dtype=dtype) for shape in ((out, 5), (out,), (4, 5)))
    for rows in (x, x[1:], x[:1], x.t().contiguous().t()):
        for added in (bias, None):
            product = summed(rows, layout(weight), added, out)
            assert torch.allclose(product, functional.linear(rows, weight, added), atol=1e-5) and product.dtype == dtype


@pytest.mark.parametrize("capability, lanes_of_32", [("AVX512", 16), ("AVX2", 8), ("DEFAULT", 4)])
def test_lanes_fill_a_register(monkeypatch, capability, lanes_of_32):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    assert in_lanes(torch.ones(64, 3)).shape == (2, 32 // lanes_of_32, 3, lanes_of_32)
    assert in_lanes(torch.ones(64, 3).double()).shape == (2, 64 // lanes_of_32, 3, lanes_of_32 // 2)
    assert in_lanes(torch.ones(65, 3)).sum() == 65 * 3


def test_copies_follow_weights_that_are_changed_in_place():
    weights = [torch.randn(8, 3), torch.randn(4, 3)]
    products = [Product(weight) for weight in weights]
    held = Lanes(products)
    places = [product.lanes.data_ptr() for product in products]
    weights[1].mul_(2.0)
    held.update()
    assert [product.lanes.data_ptr() for product in products] == places  # loaded programs read them there
    assert all(torch.equal(product.lanes, in_lanes(product.weight)) for product in products)
    assert Lanes(products) and [product.lanes.data_ptr() for product in products] == places  # shared


def test_copies_take_a_part_of_the_free_memory_and_those_of_onednn_make_room(monkeypatch):
    forms = dict.fromkeys(ROWS, "packed") | {1: "turned"}
    products = [Product(torch.randn(size, 32), forms=forms) for size in (512, 64, 352)]
    free = type("Free", (), {"available": products[0].weight.nbytes * 1.5})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    assert lanes.SHARE_OF_MEMORY == 0.5
    Lanes(products)
    assert [product.lanes is None for product in products] == [True, False, True]  # the last would take more
    assert [product.packed_bytes for product in products] == [0, products[1].lanes.nbytes, 0]
    assert all(product.forms == dict.fromkeys(ROWS, "plain") | {1: "turned"} for product in products)
