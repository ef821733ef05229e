"""Files that are missing, damaged or made by others; nothing here needs the real ones, or a network."""

import numpy as np
import pytest
from sklearn import datasets

from askwise.datasets.cards import CARDS
from askwise.datasets.makers import read_miniboone
from askwise.datasets.named import load, raw
from askwise.errors import InputError

ELSEWHERE = [name for name, card in CARDS.items() if not card.built_in]


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv("ASKWISE_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_missing_file_says_where_to_get_it_and_where_to_put_it(monkeypatch, tmp_path, name) -> None:
    monkeypatch.delenv("ASKWISE_DATA", raising=False)
    with pytest.raises(InputError, match="set ASKWISE_DATA to the folder that holds it") as caught:
        load(name)
    assert CARDS[name].get in str(caught.value)
    monkeypatch.setenv("ASKWISE_DATA", str(tmp_path))
    with pytest.raises(InputError, match=f"there is no file '{CARDS[name].file}' in .* then put it there") as caught:
        load(name)
    assert CARDS[name].get in str(caught.value)


def test_a_wrong_name_is_guessed() -> None:
    with pytest.raises(InputError, match=r"there is no data set 'thyriod'; did you mean 'thyroid'\?"):
        load("thyriod")


def test_another_file_of_the_same_name_is_refused_unless_it_is_ones_own(folder) -> None:
    X = np.ones((5000, 50), np.float32)
    X[:12] = -999
    np.savez(
        folder / "miniboone_tiny.npz",
        X=X,
        y=np.arange(5000) % 2,
        split=np.repeat(["train", "validation", "test"], [2000, 1000, 2000]),
    )
    with pytest.raises(InputError, match=r"'miniboone_tiny.npz' is not the one we know: its SHA-256 begins with .* verify=False"):
        load("miniboone_tiny")
    assert len(load("miniboone_tiny", verify=False).train) == 1988


def test_a_damaged_file_or_one_that_lacks_something_is_refused(folder) -> None:
    for content in (b"", b"PK\x03\x04 cut short", b"not a NumPy file at all"):
        (folder / "diabetes.npz").write_bytes(content)
        with pytest.raises(InputError, match=r"'diabetes.npz' cannot be read; it must be an .npz file"):
            raw("diabetes")
    with (folder / "diabetes.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InputError, match="cannot be read"):
        raw("diabetes")
    np.savez(folder / "diabetes.npz", X=np.zeros((3, 45)), y=np.zeros(3))
    with pytest.raises(InputError, match="lacks an array; it must hold X, y, costs"):
        raw("diabetes")


def test_diabetes_is_a_file_that_the_user_has(folder) -> None:
    rng = np.random.default_rng(0)
    costs = np.linspace(0.1, 4.5, 45).astype(np.float32)
    np.savez(folder / "diabetes.npz", X=rng.normal(size=(300, 45)), y=np.arange(300) % 3, costs=costs)
    data = load("diabetes")
    assert [len(p) for p in (data.train, data.validation, data.test)] == [210, 45, 45]
    cost_function = data.train.schema.costs
    assert float(cost_function.money(cost_function.alone[2])) == pytest.approx(0.3)  # as a person reads it, not as a float32
    np.savez(folder / "diabetes.npz", X=rng.normal(size=(300, 44)), y=np.arange(300) % 3, costs=costs[:44])
    with pytest.raises(InputError, match="gives 300 rows x 44 columns and 300 labels; for 'diabetes' it must be 300 x 45"):
        raw("diabetes")


def test_miniboone_is_read_as_uci_writes_it(folder) -> None:
    path = folder / "MiniBooNE_PID.txt"
    path.write_text("     2      3\n" + "".join(f"  {i}.5 " + "  -0.1E+01" * 49 + "\n" for i in range(5)))
    X, y = read_miniboone(path)
    assert X.shape == (5, 50)
    assert X[:, 0].tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert y.tolist() == [1, 1, 0, 0, 0]
    with pytest.raises(InputError, match=r"gives 5 rows x 50 columns and 5 labels; for 'miniboone' it must be 129596 x 50"):
        raw("miniboone")
    path.write_text("2 4\n1 2\n1 2\n")
    with pytest.raises(InputError, match=r"has 2 rows; its first line says 2 \+ 4"):
        read_miniboone(path)
    for text in ("", "2 x\n", "1 1\n1 2\n1\n", "1 1\na b\nc d\n"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"'MiniBooNE_PID.txt' is not as UCI has it"):
            read_miniboone(path)


def test_miniboone_is_split_as_in_the_paper(folder) -> None:
    # as many rows as the real file has, with as many that hold -999
    good, bad = " 1" * 50 + "\n", " -999" * 50 + "\n"
    with (folder / "MiniBooNE_PID.txt").open("w") as file:
        file.writelines([" 36499 93565\n", good * 36_488, bad * 11, good * 93_108, bad * 457])
    data = raw("miniboone")
    rows = data.splits(0)
    assert [len(r) for r in rows] == [45_359, 19_439, 64_798]
    assert (data.y == "signal").sum() == 36_488
    assert (data.X > -900).all()


def test_nothing_is_fetched_unless_asked_for(folder, monkeypatch) -> None:
    def images(name, **how):
        assert (name, how["version"]) == ("mnist_784", 1)
        X = np.zeros((70_000, 784))
        X[:, 0] = 7
        return X, np.array([str(i % 10) for i in range(70_000)])

    def forest(**how):
        return np.zeros((581_012, 54)), np.arange(581_012) % 7 + 1

    monkeypatch.setattr(datasets, "fetch_openml", images)
    monkeypatch.setattr(datasets, "fetch_covtype", forest)
    data = raw("mnist", download=True)
    assert data.X.dtype == np.uint8
    assert data.X[0, 0] == 7
    assert data.splits(0)[2].tolist() == list(range(60_000, 70_000))
    assert data.y[:11].tolist() == [*range(10), 0]
    assert raw("forest", download=True).y[0] == "Spruce/Fir"
    with pytest.raises(InputError, match="'cifar' cannot be fetched by askwise"):
        raw("cifar", download=True)

    def no_network(*args, **how):
        raise OSError("no route to host")

    monkeypatch.setattr(datasets, "fetch_openml", no_network)
    with pytest.raises(InputError, match=r"'mnist' could not be fetched \(no route to host\)"):
        load("mnist", download=True)
