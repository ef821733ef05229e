"""Files made to do harm: each is refused in one sentence, before anything of the size that it claims is allocated."""

import io
import json
import random
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from tests.support.models import family, paper, table

import askwise
from askwise.errors import AskwiseError, StateError
from askwise.model import archives
from askwise.model.archives import MODEL
from askwise.reports.model_report import card as card_of
from askwise.reports.model_report import describe

pytest.importorskip("pandas", reason="pandas is not installed")

X, Y = table(30)
MEMORY = 20 * 2**20  # bytes; the model itself takes one


@pytest.fixture(scope="module", params=["family", "paper"])
def parts(request, tmp_path_factory):
    """Arrays and card of a good file."""
    path = tmp_path_factory.mktemp("good") / "m.askwise"
    {"family": family, "paper": paper}[request.param]().save(path)
    return archives.read(path, MODEL)


@pytest.fixture(scope="module")
def npz(tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "m.npz"
    family().export(path)
    return path.read_bytes()


def refused(path) -> str:
    """The sentence with which a file is refused, in little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(StateError) as caught:
            askwise.load(path)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
        tracemalloc.reset_peak()
        assert not archives.is_kind(path, archives.STATE)
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert str(path) in str(caught.value)
    return str(caught.value)


# ---------------------------------------------------------------------- .npz


def test_no_flipped_bit_of_an_npz_file_raises_anything_else(npz, tmp_path):
    path, chance, wrong = tmp_path / "m.npz", random.Random(1), []
    header = [i for i in range(len(npz)) if npz[i : i + 2] == b"PK" or npz[i : i + 6] == b"\x93NUMPY"]
    near = [start + i for start in header for i in range(120) if start + i < len(npz)]
    expected = family().predict(X).tolist()
    for place in chance.sample(near, 200) + [chance.randrange(len(npz)) for _ in range(50)]:
        changed = bytearray(npz)
        changed[place] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        try:
            same = askwise.load(path).predict(X).tolist() == expected
            wrong += [] if same else [f"{place}: another model"]  # others are a date, say, that nobody reads
        except StateError as error:
            wrong += [f"{place}: {error}"] if "\n" in str(error) else []
        except Exception as error:
            wrong.append(f"{place}: {type(error).__name__} {error}")
        archives.is_kind(path, MODEL)
    assert wrong == []


def test_an_npz_file_cut_short_is_refused(npz, tmp_path):
    for keep in [*range(0, 60, 7), *range(60, len(npz), len(npz) // 40)]:
        (tmp_path / "m.npz").write_bytes(npz[:keep])
        refused(tmp_path / "m.npz")


def header(shape: str, dtype: str = "'<f4'", more: str = "") -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}{more}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\1\0" + len(text).to_bytes(2, "little") + text.encode()


HEADERS = {
    "a shape beyond memory": header("(1152921504606846976,)"),
    "a shape whose bytes overflow": header("(4294967296, 4294967296)"),
    "a negative shape": header("(-1,)"),
    "a shape of truths": header("(True,)"),
    "a shape of words": header("('a',)"),
    "no shape": header("None"),
    "objects": header("(1,)", "'|O'") + b"\x80\4N.",
    "texts of any size": header("(1,)", "'<U500000000'"),
    "records": header("(1,)", "[('a', '<f4')]") + b"\0" * 4,
    "times": header("(1,)", "'<M8[s]'") + b"\0" * 8,
    "complex numbers": header("(1,)", "'<c8'") + b"\0" * 8,
    "no type": header("(1,)", "'nothing'"),
    "code": header("(__import__('os').getpid(),)"),
    "brackets": header("(" * 500 + ")" * 500),
    "a power": header("(9**9**9,)"),
    "more than it says": header("(1,)") + b"\0" * 8,
    "less than it says": header("(3,)") + b"\0" * 8,
    "a long header": b"\x93NUMPY\2\0" + (2**31).to_bytes(4, "little"),
    "another version": b"\x93NUMPY\7\0" + header("(1,)")[8:],
    "no array": b"hello",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HEADERS)
def test_no_header_of_an_array_is_believed(name, npz, tmp_path):
    path = tmp_path / "m.npz"
    with zipfile.ZipFile(io.BytesIO(npz)) as good, zipfile.ZipFile(path, "w") as bad:
        for part in good.namelist():
            bad.writestr(part, HEADERS[name] if part == "loss.npy" else good.read(part))
    assert "cut short or damaged" in refused(path)


def zipped(path, npz, how) -> None:
    """The file with something else done to its parts."""
    with zipfile.ZipFile(io.BytesIO(npz)) as good, zipfile.ZipFile(path, "w") as bad:
        how(bad, {part: good.read(part) for part in good.namelist()})


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_zip_bombs_are_refused_before_they_are_opened(npz, tmp_path):
    path = tmp_path / "m.npz"

    def bomb(file, parts):
        for name, data in parts.items():
            file.writestr(name, data)
        file.writestr("more.npy", header(f"({2**24},)") + bytes(2**26), zipfile.ZIP_DEFLATED)

    zipped(path, npz, bomb)
    assert path.stat().st_size < len(npz) + 2**17
    assert "compressed" in refused(path)

    def twice(file, parts):
        for name, data in [*parts.items(), *parts.items()]:
            file.writestr(name, data)

    zipped(path, npz, twice)
    assert "the same name" in refused(path)


def test_parts_that_share_their_bytes_are_refused(npz, tmp_path):
    """A part for every line of the table of contents, all of them the same bytes."""
    file, line = stored(bytes(2**16))
    write_zip(tmp_path / "m.npz", file, [line(f"{i:x}") for i in range(2000)])
    assert "larger than it is" in refused(tmp_path / "m.npz")


def test_a_table_of_contents_beyond_measure_is_refused(tmp_path):
    file, line = stored(b"")
    write_zip(tmp_path / "m.npz", file, [line(f"{i:x}") for i in range(30_000)])
    assert "table of contents" in refused(tmp_path / "m.npz")


def stored(data: bytes):
    """A part of a zip file, and what makes lines of the table of contents that lead to it."""
    sizes = zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little") * 2
    part = b"PK\3\4" + bytes(10) + sizes + b"\1\0\0\0a" + data
    return part, lambda name: b"PK\1\2" + bytes(12) + sizes + len(name).to_bytes(2, "little") + bytes(16) + name.encode()


def write_zip(path, file: bytes, lines: list[bytes]) -> None:
    contents, many = b"".join(lines), len(lines).to_bytes(2, "little")
    end = b"PK\5\6" + bytes(4) + many * 2 + len(contents).to_bytes(4, "little") + len(file).to_bytes(4, "little") + bytes(2)
    path.write_bytes(file + contents + end)


def test_a_second_table_of_contents_is_refused(npz, tmp_path):
    locator = b"PK\6\7" + bytes(16)
    (tmp_path / "m.npz").write_bytes(npz[:-22] + locator + npz[-22:])
    assert "table of contents" in refused(tmp_path / "m.npz")


# ---------------------------------------------------------------------- cards with a right checksum


def changed(card, path, value):
    """A copy with another value at a place like encoding.columns.0.low."""
    copy = holder = json.loads(json.dumps(card))
    *above, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    for key in above:
        holder = holder[key]
    holder[last] = value
    return copy


NAN, INF = float("nan"), float("inf")
CARDS = [
    ("class_type", "<U500000000"), ("class_type", "<U" + "9" * 30), ("class_type", "S4"), ("class_type", "|O"),
    ("class_type", ""), ("class_type", "<M8[s]"), ("class_type", "<f8"), ("class_type", 3), ("class_type", "f4,(1000000000)i8"),
    ("classes.0", NAN), ("classes.0", None), ("classes.0", 10**400), ("classes.0", "x" * 2**20), ("classes.0", ["ill"]),
    ("classes", {"ill": 1, "well": 2}), ("classes", "ab"),
    ("encoding.columns.0.low", NAN), ("encoding.columns.0.low", -INF), ("encoding.columns.0.high", NAN),
    ("encoding.columns.0.high", INF), ("encoding.columns.0.low", 1e9), ("encoding.columns.0.low", "nan"),
    ("encoding.columns.0.high", 1e300), ("encoding.columns.0.mean", [NAN]), ("encoding.columns.0.mean", [1e300]),
    ("encoding.columns.0.deviation", [1e-320]), ("encoding.columns.0.deviation", [INF]), ("encoding.columns.0.mean", [0] * 10**5),
    ("facts.seconds", 1e300), ("facts.seconds", NAN), ("facts.seconds", -1), ("facts.seconds", "long"),
    ("facts.seconds", 10**400), ("facts.loss_scale", 10**400), ("facts.loss_scale", NAN), ("facts.records", [[1, 2]]),
    ("facts.records", 5), ("facts.drawn", 1e300), ("facts.drawn", -1), ("facts.drawn", "many"),
    ("facts.areas", [[NAN, 1]]), ("seed", 10**30), ("seed", -1), ("seed", 1.0), ("seed", True), ("points.1.lam", NAN),
    ("points.1.cost", 10**400),
    ("points.1.prefix", 2**62), ("points.1.prefix", -5), ("points.1.prefix", 1e300), ("points", [{}] * 20_000), ("points", []),
    ("cost_unit", "1/" + "9" * 39), ("cost_unit", "1e999999999"), ("cost_unit", "0"), ("cost_unit", "9" * 5000),
    ("budget.hard", "1e999999999"), ("budget.hard", "1/0"), ("budget.hard", "-1"), ("budget.average", "9" * 5000),
    ("budget.lam", "nan"), ("budget.lam", "1e999"), ("trained_for.lam", "inf"), ("known", ["nobody"]), ("unit", 3),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value"), CARDS, ids=lambda v: str(v)[:25])
def test_a_card_with_a_right_checksum_is_checked_too(parts, path, value, tmp_path):
    """Refused; or, where it does not matter, everything that is done with models can be done."""
    arrays, card = parts
    archives.write(tmp_path / "m", MODEL, arrays, changed(card, path, value))
    tracemalloc.start()
    try:
        model = askwise.load(tmp_path / "m")
    except AskwiseError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert len(str(error)) < 600  # noqa: PT017
        return
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MEMORY + 60 * len(str(value))
    assert path.startswith(("encoding", "points"))
    assert np.isfinite(model.acquire(X).cost).all()
    assert describe(model)
    json.dumps({k: v for k, v in card_of(model).items() if k != "facts"}, allow_nan=False)
    assert model.form.fields(model.schema.tests[0])
    assert model.session(case_id="a").next()


TIMES = [("low", 1e300), ("high", 1e300), ("low", -1e12), ("high", 2.6e11), ("low", NAN), ("mean", [1e300])]


@pytest.mark.parametrize(("name", "value"), TIMES, ids=str)
def test_no_date_of_a_card_is_beyond_the_calendar(name, value, tmp_path):
    dates = np.datetime64("2020-01-01", "s") + np.arange(len(X)).astype("timedelta64[D]")
    family(X[["age"]].assign(day=dates), Y, costs={"age": 1, "day": 1}).save(tmp_path / "m")
    arrays, card = archives.read(tmp_path / "m", MODEL)
    assert card["encoding"]["columns"][1]["kind"] == "time"
    archives.write(tmp_path / "m", MODEL, arrays, changed(card, f"encoding.columns.1.{name}", value))
    refused(tmp_path / "m")


def test_a_date_beyond_the_calendar_is_refused_before_training():
    far = np.array(["2020-01-01", "12020-01-01"] * 15, "datetime64[s]")
    words = r"column 'day' holds '12020-.*' in row [0-9]*[13579] .*; dates must be of the years 1 to 9999"
    with pytest.raises(AskwiseError, match=words):
        askwise.CostlyClassifier().fit(X[["age"]].assign(day=far), Y)


TEXTS = {
    "deep": "[" * 100_000,
    "deep dicts": '{"a":' * 100_000,
    "twice": '{"seed": 1, "seed": 2}',
    "a list": "[]",
    "a number": "1",
    "many digits": '{"seed": ' + "9" * 5000 + "}",
    "long": '{"a": "' + "x" * archives.LONGEST + '"}',
    "many lists": "[" + "[]," * (archives.LONGEST // 3) + "[]]",
    "half a character": '"\\ud800"',
    "nothing": "",
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_of_a_file_is_too_much(name, parts, tmp_path, monkeypatch):
    arrays, _ = parts
    monkeypatch.setattr(archives.json, "dumps", lambda facts: facts)
    archives.write(tmp_path / "m", MODEL, {"costs/own": arrays["costs/own"]}, TEXTS[name])
    monkeypatch.undo()
    tracemalloc.start()
    with pytest.raises(StateError) as caught:
        askwise.load(tmp_path / "m")
    assert tracemalloc.get_traced_memory()[1] < 6 * archives.LONGEST
    tracemalloc.stop()
    assert "\n" not in str(caught.value)


def test_arrays_do_not_grow_when_they_are_added(parts, tmp_path):
    arrays, card = parts
    for name, value in arrays.items():
        if value.ndim == 1 and value.dtype.kind == "f":
            archives.write(tmp_path / "m", MODEL, {**arrays, name: np.zeros((2**16, 1, 1), value.dtype)}, card)
            refused(tmp_path / "m")


def test_arrays_that_fit_only_two_cases_or_no_session_are_refused(parts, tmp_path):
    arrays, card = parts
    for name, value in arrays.items():
        other = [value.reshape(-1)] if value.ndim == 2 else [np.stack([value, value])]
        for wrong in other + ([value[:, :-1], np.concatenate([value, value])] if name == "family/forecast" else []):
            archives.write(tmp_path / "m", MODEL, {**arrays, name: wrong}, card)
            refused(tmp_path / "m")


def test_a_long_chain_of_derived_tests_does_not_hang(tmp_path):
    """Whether a test is computed from itself is seen in one pass over all of them."""
    from askwise.core.costs import _circle

    n = 3000
    chain = np.eye(n, k=-1, dtype=bool)
    assert _circle(chain) is None
    chain[0, n - 1] = True
    assert _circle(chain) == 0
    chain[0, n - 1], chain[7, 9] = False, True
    assert _circle(chain) == 7


# ---------------------------------------------------------------------- states of training runs


def test_states_are_read_by_the_same_rules(tmp_path):
    path, chance = tmp_path / "s", random.Random(2)
    askwise.model.file.write_state(path, {"a": np.arange(5.0)}, {"step": 3})
    good = path.read_bytes()
    for _ in range(150):
        changed = bytearray(good)
        changed[chance.randrange(len(good))] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(StateError) as caught:
            askwise.model.file.read_state(path)
        assert "\n" not in str(caught.value)
