"""The service in a process of its own."""

import os
import re
import subprocess
import sys
import tempfile


class Process:
    """`askwise serve` in a process of its own."""

    def __init__(self, *argv: object, **environment: str) -> None:
        given = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        command = [sys.executable, "-m", "askwise", "serve", *map(str, argv), "--port", "0"]
        # not a pipe: it would be full some time, and the service would wait
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=given)
        line = self.process.stdout.readline()
        found = re.search(r"http://[^/]+:(\d+)", line)
        assert found, (line, self._logged())
        self.port, self.url = int(found[1]), found[0]

    def stop(self) -> tuple[int, str]:
        """Exit code, and all that was logged."""
        self.process.terminate()
        self.process.wait(timeout=20)
        self.process.stdout.close()
        return self.process.returncode, self._logged()

    def _logged(self) -> str:
        self.log.seek(0)
        with self.log:
            return self.log.read()
