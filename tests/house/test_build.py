"""What is published: a wheel and an sdist, and the wheel works where nothing else is installed."""

import os
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_works_without_extras(tmp_path: Path) -> None:
    done = subprocess.run([ROOT / "dev", "build", tmp_path / "dist"], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "the wheel works: right in " in done.stdout
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    wheel, sdist = tmp_path / f"dist/askwise-{version}-py3-none-any.whl", tmp_path / f"dist/askwise-{version}.tar.gz"
    assert sorted(os.listdir(tmp_path / "dist")) == sorted([wheel.name, sdist.name])
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith(f"askwise-{version}.dist-info/")}
    assert {"askwise/cli/__init__.py", "askwise/web/templates/base.html", "askwise/web/static/askwise.js"} <= packed
    assert all(name.startswith("askwise/") for name in packed)
    with tarfile.open(sdist) as archive:
        assert f"askwise-{version}/src/askwise/__init__.py" in archive.getnames()


def test_the_citation_names_this_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
