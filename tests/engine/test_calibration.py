"""The forms of products are chosen by their times, which are taken once and kept, and taken anew when damaged."""

import json
import os

import pytest
import torch

from specworkbench.engine.calibration import Calibration, calibration_here, chosen, forget_times, gain, worth_copying
from specworkbench.engine.loading import load_model
from specworkbench.engine.products import FORMS, ROWS, Affine
from specworkbench.equivalence.toys import toy_model

SHAPES = [(128, 256), (256, 128)]


def times_of(**of_form: float):
    """The same for every number of rows; what is not named takes 100 us."""
    return {rows: dict.fromkeys(FORMS, 100.0) | of_form for rows in ROWS}


class Stopwatch:
    """Times everything as told, and says how often it was asked. times: None for a busy machine."""

    def __init__(self, times=None, alone=None):
        self.times, self.alone, self.asked = times, alone, []

    def __call__(self, shape, dtype, threads):
        self.asked.append((shape, threads))
        return self.alone if threads == 1 and self.alone else self.times


def affines(*shapes):
    return [Affine(torch.randn(shape)) for shape in shapes]


def calibration(measure, folder=None, threads=2, dtype=torch.float32):
    return Calibration(dtype, threads, folder, measure)


@pytest.mark.parametrize("fastest", [name for name in FORMS if name != "plain"])
def test_the_fastest_form_is_chosen(fastest):
    product = calibration(Stopwatch(times_of(**{fastest: 50.0}))).products(affines(SHAPES[0]))[0]
    assert {product.form(rows) for rows in (1, 2, 5, 9, 40, 300)} == {fastest}
    assert (product.packed is not None) == (fastest == "packed")


def test_every_number_of_rows_has_its_own():
    of_rows = dict(zip(ROWS, [*FORMS, "turned"], strict=True))
    times = {rows: dict.fromkeys(FORMS, 100.0) | {name: 20.0} for rows, name in of_rows.items()}
    assert chosen(times, copies=True) == of_rows


def test_of_equally_fast_forms_the_first_is_chosen_and_none_that_copies():
    assert set(chosen(times_of(), copies=True).values()) == {"plain"}
    assert set(chosen(times_of(turned_blocks=95.0, packed=93.0), copies=True).values()) == {"plain"}
    assert set(chosen(times_of(turned_blocks=80.0, packed=79.0), copies=True).values()) == {"turned_blocks"}


def test_a_weight_is_copied_where_it_is_worth_its_memory():
    assert gain(times_of(turned=60.0, packed=50.0)) == pytest.approx(1.2)
    for packed, expected in ((51.0, {"turned"}), (49.0, {"packed"})):
        product = calibration(Stopwatch(times_of(turned=60.0, packed=packed))).products(affines(SHAPES[0]))[0]
        assert set(product.forms.values()) == expected
    many_rows_only = times_of() | {ROWS[-1]: dict.fromkeys(FORMS, 100.0) | {"packed": 1.0}}
    assert gain(many_rows_only) == 1.0  # what speculative decoding has are few


def test_copies_take_no_more_memory_than_there_is_room_the_largest_gain_first():
    times = {(10, 10): times_of(packed=50.0), (20, 10): times_of(packed=25.0), (5, 10): times_of(packed=40.0)}
    counts = {(10, 10): 3, (20, 10): 2, (5, 10): 1}
    for room, expected in ((1599, {(10, 10), (5, 10)}), (1600, {(20, 10)}), (1800, {(20, 10), (5, 10)}), (0, set())):
        assert worth_copying(times, counts, 4, room) == expected
    assert worth_copying(times, counts, 4, 1e9) == set(times)


def test_copies_leave_half_of_the_free_memory(monkeypatch):
    weights = affines(SHAPES[0], SHAPES[0])
    for available, packed in ((3.9, False), (4.1, True)):
        memory = type("Memory", (), {"available": available * weights[0].weight.nbytes})
        monkeypatch.setattr("specworkbench.engine.calibration.psutil.virtual_memory", lambda memory=memory: memory)
        products = calibration(Stopwatch(times_of(packed=10.0))).products(weights)
        assert [product.packed is not None for product in products] == [packed, packed]


def test_small_weights_and_toy_models_are_not_timed(monkeypatch):
    watch = Stopwatch(times_of(turned=1.0))
    product = calibration(watch).products(affines((64, 64)))[0]
    assert set(product.forms.values()) == {"plain"} and not watch.asked
    monkeypatch.setattr("specworkbench.engine.models.calibration_here", lambda dtype: calibration(watch, dtype=dtype))
    toy_model(7, width=32)
    assert not watch.asked


def test_each_shape_is_timed_once_however_many_weights_have_it(tmp_path):
    watch = Stopwatch(times_of(turned=1.0))
    first = calibration(watch, tmp_path)
    first.products(affines(*SHAPES, *SHAPES))
    first.products(affines(*SHAPES))
    assert watch.asked == [(shape, 2) for shape in SHAPES]


def test_times_are_kept_for_the_next_process(tmp_path):
    times = {rows: {name: float(rows + i) for i, name in enumerate(FORMS)} for rows in ROWS}
    first = calibration(Stopwatch(times), tmp_path)
    first.times(SHAPES[:1])
    assert [path.name for path in tmp_path.iterdir()] == [first.file.name]  # whole, and nothing beside it
    watch = Stopwatch(times_of())
    again = calibration(watch, tmp_path)
    assert again.times(SHAPES) == {SHAPES[0]: times, SHAPES[1]: times_of()} and watch.asked == [(SHAPES[1], 2)]
    assert calibration(None, tmp_path).times(SHAPES)[SHAPES[0]] == times


def test_forgotten_times_are_taken_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECWORKBENCH_CACHE", str(tmp_path))
    forget_times()  # of this process, which knows another folder
    here = calibration_here(torch.float32)
    here._measure = Stopwatch(times_of())
    here.times(SHAPES[:1])
    assert here.file.exists() and calibration_here(torch.float32) is here
    forget_times()
    assert not here.file.exists() and calibration_here(torch.float32) is not here


def test_what_another_process_has_kept_meanwhile_stays(tmp_path):
    one, other = (calibration(Stopwatch(times_of(turned=time)), tmp_path) for time in (1.0, 2.0))
    one.times([]), other.times([])
    one.times(SHAPES[:1]), other.times(SHAPES[1:])
    kept = calibration(None, tmp_path).times(SHAPES)
    assert [kept[shape][1]["turned"] for shape in SHAPES] == [1.0, 2.0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"plain"', '"plane"'),
        lambda text: text.replace("100.0", "-1.0"),
        lambda text: text.replace("100.0", "NaN"),
        lambda text: text.replace("100.0", '"fast"'),
        lambda text: text.replace('"64"', '"63"'),
        lambda text: text.replace("128x256", "128"),
        lambda text: text.replace('"threads": 2', '"threads": 3'),
    ],
)
def test_a_damaged_file_is_made_anew(tmp_path, damage):
    first = calibration(Stopwatch(times_of()), tmp_path)
    first.times(SHAPES[:1])
    text = first.file.read_text()
    first.file.write_text(damage(text))
    assert first.file.read_text() != text
    watch = Stopwatch(times_of())
    calibration(watch, tmp_path).times(SHAPES[:1])
    assert watch.asked == [(SHAPES[0], 2)] and first.file.read_text() == text


def test_every_machine_has_a_file_of_its_own(tmp_path, monkeypatch):
    files = {calibration(None, tmp_path).file, calibration(None, tmp_path, threads=4).file}
    files.add(calibration(None, tmp_path, dtype=torch.bfloat16).file)
    monkeypatch.setattr("specworkbench.engine.calibration.cpu_model", lambda: "another processor")
    files.add(calibration(None, tmp_path).file)
    monkeypatch.setattr(torch, "__version__", "9.9")
    files.add(calibration(None, tmp_path).file)
    assert len(files) == 5


def test_a_folder_that_cannot_be_written_does_not_matter(tmp_path):
    (tmp_path / "file").write_text("")
    product = calibration(Stopwatch(times_of(turned=1.0)), tmp_path / "file").products(affines(SHAPES[0]))[0]
    assert product.form(1) == "turned"


def test_on_a_busy_machine_the_times_of_one_thread_decide_and_are_kept_as_such(tmp_path):
    watch = Stopwatch(times=None, alone=times_of(turned=1.0))
    busy = calibration(watch, tmp_path)
    product = busy.products(affines(*SHAPES))[0]
    assert product.form(1) == "turned" and not busy.file.exists()
    assert watch.asked == [(SHAPES[0], 2), (SHAPES[0], 1), (SHAPES[1], 1)]
    kept = json.loads(calibration(None, tmp_path, threads=1).file.read_text())
    assert kept["machine"]["threads"] == 1 and len(kept["times"]) == 2
    quiet = calibration(Stopwatch(times_of(plain_blocks=1.0)), tmp_path)
    assert quiet.products(affines(SHAPES[0]))[0].form(1) == "plain_blocks" and quiet.file.exists()


def test_a_load_keeps_its_times_where_the_variable_says_and_the_next_one_reads_them(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECWORKBENCH_CACHE", str(tmp_path))
    first = load_model("embedded", device="cpu")
    names = {path.suffix for path in (tmp_path / "products").iterdir()}
    assert names == {".json"}
    monkeypatch.setattr("specworkbench.engine.calibration._calibration", Calibration)  # as a new process
    monkeypatch.setattr("specworkbench.engine.product_timing.measured", lambda *a: pytest.fail("timed again"))
    if calibration_here(torch.float32).file.exists():  # else the machine was busy
        assert load_model("embedded", device="cpu").describe()["products"] == first.describe()["products"]
    assert os.environ["SPECWORKBENCH_CACHE"] == str(tmp_path)
