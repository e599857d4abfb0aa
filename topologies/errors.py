"""The error for invalid input of a user: one line with the file, the line and the field."""


class InputError(Exception):
    """Invalid input (exit code 2).

    file: the file as the user named it, or the override at fault (`--set workload.rate=5`).
    line: 1-based line in that file, or None.
    field: dotted path of the field (`links.0.delay`), or "".
    problem: what is wrong and what would be right.
    """

    def __init__(self, file: str, line: int | None, field: str, problem: str) -> None:
        self.file, self.line, self.field, self.problem = file, line, field, " ".join(problem.split())
        super().__init__(str(self))

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, int | None, str, str]]:
        """Support pickling, so that the error can be raised in another process."""
        return type(self), (self.file, self.line, self.field, self.problem)

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.field, self.problem) if part)
