"""Where the files of the named data sets are: in the package, in the folder named by ASKWISE_DATA, or at their public home."""

from __future__ import annotations

import csv
import hashlib
import os
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from askwise.core.arrays import Arrays
from askwise.datasets.cards import Card
from askwise.errors import InputError

FOLDER = "ASKWISE_DATA"


@dataclass(frozen=True)
class Source:
    """The file of one data set. Nothing is fetched unless `download`; `verify` compares checksums."""

    card: Card
    download: bool = False
    verify: bool = True

    def built_in_rows(self) -> list[list[str]]:
        """The fields of a file that comes with the package; lines that start with @ describe it."""
        file = resources.files("askwise.datasets") / "files" / str(self.card.file)
        return list(csv.reader(line for line in file.read_text().splitlines() if line and not line.startswith("@")))

    def find(self, *files: str) -> list[Path] | None:
        """These files in the folder, if all of them are there."""
        folder = os.environ.get(FOLDER)
        paths = [Path(folder) / file for file in files] if folder else []
        return paths if paths and all(path.is_file() for path in paths) else None

    def path(self) -> Path:
        """The file in the folder, or a sentence that says where to get it and where to put it."""
        card = self.card
        if paths := self.find(str(card.file)):
            if self.verify and card.sha256:
                _verify(paths[0], card.sha256)
            return paths[0]
        folder = os.environ.get(FOLDER)
        if not folder:
            raise InputError(
                f"{card.name!r} needs the file {card.file!r}, which is not part of the package; {card.get}; then "
                f"set {FOLDER} to the folder that holds it"
            )
        raise InputError(
            f"there is no file {card.file!r} in {folder!r}, the folder that {FOLDER} names; {card.get}; then put it there"
        )

    def arrays(self, *names: str) -> Arrays:
        """Some arrays of a NumPy file in the folder; with `download`, from their public home where the file is not there."""
        if self.download and self.find(str(self.card.file)) is None:
            return _fetch(self.card)
        path = self.path()
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:  # a damaged file is closed, too
                return {name: stored[name] for name in names}
        except KeyError:
            raise InputError(f"the file {path.name!r} lacks an array; it must hold {', '.join(names)}") from None
        except (ValueError, OSError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
            raise InputError(
                f"the file {path.name!r} cannot be read; it must be an .npz file of NumPy without pickled objects"
            ) from None


def _verify(path: Path, expected: str) -> None:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != expected:
        raise InputError(
            f"the file {path.name!r} is not the one we know: its SHA-256 begins with {digest[:12]}, not with "
            f"{expected[:12]}; get it again, or use verify=False if you made it yourself"
        )


def _fetch(card: Card) -> Arrays:
    """From the public home, by scikit-learn, which keeps a copy in its own folder."""
    from sklearn import datasets

    try:
        if card.name == "mnist":
            X, y = datasets.fetch_openml("mnist_784", version=1, as_frame=False, return_X_y=True)
            return {"X": X.astype(np.uint8), "y": y.astype(np.int64), "is_test": np.arange(len(X)) >= 60_000}
        if card.name == "forest":
            X, y = datasets.fetch_covtype(return_X_y=True)
            return {"X": X.astype(np.int16), "y": y.astype(np.int64) - 1}
    except (OSError, ImportError) as error:
        raise InputError(f"{card.name!r} could not be fetched ({error}); {card.get}") from None
    raise InputError(f"{card.name!r} cannot be fetched by askwise; {card.get}")
