"""The thread that reads what a run writes, until its captures have ended."""

import threading
from collections.abc import Callable

from analysis.errors import AnalysisError


class LiveReading:
    """Reads one run in a separate thread. failure: why it stopped. ended: whether everything was read."""

    def __init__(self, on_ready: Callable[[], None], on_end: Callable[[], None]) -> None:
        self.failure: str | None = None
        self.ended = False
        self._on_ready, self._on_end = on_ready, on_end
        self._captured = threading.Event()
        self._thread = threading.Thread(target=self._go, name="reading", daemon=True)

    def start(self) -> None:
        """Call `on_ready` once reading can begin, then read until `finish`."""
        self._thread.start()

    def finish(self) -> None:
        """Read the rest, since captures have ended. Returns at once."""
        self._captured.set()

    def _go(self) -> None:
        try:
            self._run()
        except AnalysisError as error:
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001 - an error here must not affect the run; it is shown in one line
            self.failure = f"{type(error).__name__}: {error}".partition("\n")[0]

    def _run(self) -> None:
        raise NotImplementedError
