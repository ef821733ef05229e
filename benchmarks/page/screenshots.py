"""The pictures of the page in docs/page, taken in Chromium.

    ./dev sh python -m benchmarks.page.screenshots [MODEL.askwise ...] [--out docs/page]

Without a model one is fitted to made-up patients, of whom the kind of cough says which dear test helps. One case is answered with
values in the middle of what training saw.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from tests.web.browser import chromium

from benchmarks.script import arguments
from benchmarks.serve.process import serving

DESK, PHONE = {"width": 1120, "height": 760}, {"width": 390, "height": 780}


def fit_clinic(path: Path) -> Path:
    """Made-up patients."""
    import numpy as np
    import pandas as pd

    from askwise import CostlyClassifier, StackConfig, Tradeoff

    rng, n = np.random.default_rng(0), 3000
    age, fever, shadow = rng.integers(18, 90, n), rng.normal(37.4, 0.9, n).round(1), rng.normal(size=n).round(2)
    count, sugar = rng.normal(8, 3, n).round(1), rng.normal(95, 18, n).round(0)
    cough = rng.choice(["none", "dry", "wet"], n, p=[0.3, 0.35, 0.35])
    score = np.select([cough == "wet", cough == "dry"], [2.2 * shadow, 0.9 * (count - 8)], (fever - 37.9) * 1.6 + (age - 60) / 25)
    y = np.where(score + rng.normal(scale=0.35, size=n) > 0.3, "ill", "well")
    table = pd.DataFrame(
        {"age": age, "cough": cough, "fever": fever, "blood count": count, "blood sugar": sugar, "x-ray": shadow}
    )
    model = (
        CostlyClassifier(
            costs={"age": 0, "cough": 1, "fever": "1.5", "blood count": "6.4", "blood sugar": "3.2", "x-ray": 18},
            setup={"blood draw": ("2.1", ["blood count", "blood sugar"])},
            known=["age"],
            unit="$",
            random_state=0,
            config=StackConfig.quick(),
        )
        .fit(table, y)
        .model_
    )
    adaptive = [p for p in model.points if p.prefix is None]
    (model.at(Tradeoff(adaptive[-1].lam)) if adaptive else model).save(path)
    return path


def answer(page: Any, model: Any, n: int) -> None:
    """Fills in the question that is shown, with a typical value."""
    test = page.locator("h1").inner_text()
    for i, field in enumerate(model.form.fields(test)):
        name = f"[name='value.{i}']"
        if page.locator(f"{name}[type=radio]").count():
            page.locator(f"{name}[type=radio]").nth(n % 2).check()
        elif page.locator(f"select{name}").count():
            page.locator(f"select{name}").select_option(index=1 + n % 2)
        else:
            low, high = (0.0, 1.0) if field.low is None else (field.low, field.high)
            value = low + (high - low) * (0.3 + 0.1 * (n % 4))
            page.locator(name).fill(str(round(value)) if field.whole else f"{value:.3g}")
    press(page, "Answer")


def press(page: Any, words: str) -> None:
    page.evaluate("document.querySelector('main').dataset.old = '1'")
    page.get_by_role("button", name=words, exact=True).click()
    page.wait_for_function("() => !document.querySelector('main').dataset.old")


def shots(browser: Any, url: str, name: str, model: Any, out: Path) -> None:
    def opened(path: str, size: dict[str, int], scheme: str = "light") -> Any:
        page = browser.new_context(base_url=url, viewport=size, color_scheme=scheme).new_page()
        page.goto(path)
        return page

    def take(page: Any, file: str, whole: bool = True) -> None:
        page.evaluate("document.activeElement.blur()")
        page.wait_for_timeout(400)
        page.screenshot(path=out / f"{file}.png", full_page=whole)

    take(opened("/", DESK), "models")
    page = opened(f"/m/{name}", DESK)
    take(page, "start")
    page.get_by_label("Name of the case").fill("A-17")
    press(page, "Start")
    for n in range(2):
        if page.locator("#decision").count() == 0:
            answer(page, model, n)
    take(page, "question")
    press(page, "Answer")
    take(page, "wrong")
    for n in range(2, 100):
        if page.locator("#decision").count():
            break
        answer(page, model, n)
    take(page, "decision")
    page.emulate_media(media="print")
    take(page, "record-printed")
    take(opened(f"/m/{name}/model", DESK), "model")
    take(opened(f"/m/{name}/model", DESK, "dark"), "model-dark")
    phone = opened(f"/m/{name}", PHONE, "dark")
    press(phone, "Start")
    take(phone, "question-phone")
    take(opened("/docs", DESK), "api", whole=False)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("model", type=Path, nargs="*")
    parser.add_argument("--out", type=Path, default=Path("docs/page"))
    options = parser.parse_args()
    from askwise.facade import load

    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        models = options.model or [fit_clinic(Path(folder) / "clinic.askwise")]
        with serving(*models) as (port, _), chromium() as browser:
            shots(browser, f"http://127.0.0.1:{port}", models[0].stem, load(models[0]), options.out)


if __name__ == "__main__":
    main()
