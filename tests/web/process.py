"""The service in a process of its own."""

import os
import re
import subprocess
import sys


class Process:
    """`askwise serve` in a process of its own."""

    def __init__(self, *argv: object, **environment: str) -> None:
        given = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        command = [sys.executable, "-m", "askwise", "serve", *map(str, argv), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given)
        line = self.process.stdout.readline()
        found = re.search(r"http://[^/]+:(\d+)", line)
        assert found, (line, self.process.communicate()[1])
        self.port, self.url = int(found[1]), found[0]

    def stop(self) -> tuple[int, str]:
        """Exit code, and all that was logged."""
        self.process.terminate()
        _, log = self.process.communicate(timeout=20)
        return self.process.returncode, log
