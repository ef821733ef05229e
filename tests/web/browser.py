"""Chromium for tests and screenshots: the system's own, without anything that would talk to others."""

import os
import shutil
from contextlib import contextmanager

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
PROGRAM = shutil.which("chromium") or "/usr/bin/chromium"
MISSING = not os.path.exists(PROGRAM)
IN_CI = os.environ.get("CI", "").lower() == "true"


@contextmanager
def chromium():
    """A browser. Closed in the end, whatever happens."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
