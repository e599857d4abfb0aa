"""Lint of the English in code and documentation: `python -m tests.plain_english [PATH...]`.

Checks docstrings, comments, messages, Markdown, YAML, and comments of CSS, JavaScript and shell for words and
sentence patterns that readers of English as a second language stumble over. Checks names of Python for words
that are no terms of the field. Prints one line per finding; exit code 1 if there is one.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import yaml

WORDS = re.compile(
    r"\b(whoever|whomever|whosoever|nobody|nobodys|somebody|anew|alike|of which|of whom|so many|so often"
    r"|the so-manieth|what is asked of|(?:by|to|for|of|from) who|stand(?:s|ing)? still|stood still)\b",
    re.IGNORECASE,
)
# A sentence that begins with one of these is inverted ("Of X, Y is kept") or a riddle ("What X says").
OPENINGS = re.compile(
    r"(?:^|[.:;!?]\s+)("
    r"(?:Of|From|To|With|At|By|For) (?:what|whom|which)\b|Of [a-z]+|Where [a-z]+|Whose [a-z]+|Whom [a-z]+"
    r"|What (?!if\b)[a-z]+(?![^.]*\?))"
)
NAMES = re.compile(
    r"^_*(Surroundings|Ground|Deed|Errand|Word|Tell|News|Mail|Post|Lot|Whole|Together|Beside|Weak|Why|Heirs|Orphans"
    r"|Keeping|Kept|Asked|Told|Got|Became|of|carry_out|carried_out|nobodys|handfuls)$"
)
CODE_SPAN = re.compile(r"`[^`]*`")
GENERATED = ("docs/commands.md", "docs/tables.md")


def prose(text: str) -> str:
    """Return the text without code spans, on one line."""
    return " ".join(CODE_SPAN.sub("`x`", text).split())


def findings_in_text(text: str) -> Iterator[str]:
    """Yield each banned word and opening."""
    plain = prose(text)
    for pattern in (WORDS, OPENINGS):
        for match in pattern.finditer(plain):
            at = match.start(1)
            yield f"{match.group(1)!r} in: {plain[max(0, at - 20) : at + 60]}"


def texts_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each run of comments and of each string with a space in it."""
    comment: list[str] = []
    first = last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if comment and token.start[0] != last + 1:
                yield first, "\n".join(comment)
                comment = []
            first = first if comment else token.start[0]
            comment.append(token.string.lstrip("# "))
            last = token.start[0]
        elif token.type == tokenize.STRING and " " in token.string:
            yield token.start[0], token.string.lstrip("rbfRBFu").strip("\"'")
    if comment:
        yield first, "\n".join(comment)


def names_of_python(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each definition of a class, function or method."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name


def texts_of_markdown(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each paragraph outside code blocks."""
    paragraph: list[str] = []
    first, in_code = 1, False
    for number, line in enumerate([*source.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        if line.strip() and not in_code and not fence and not line.startswith("#"):
            first = first if paragraph else number
            paragraph.append(line.strip("|>*- "))
            continue
        if paragraph:
            yield first, "\n".join(paragraph)
            paragraph = []
        in_code ^= fence


def texts_of_yaml(source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and text of each scalar and of each run of comments."""
    plain = source
    for token in yaml.scan(source):
        if isinstance(token, yaml.ScalarToken):
            yield token.start_mark.line + 1, token.value
            start, end = token.start_mark.index, token.end_mark.index
            plain = plain[:start] + re.sub(r"[^\n]", "x", plain[start:end]) + plain[end:]
    yield from texts_of_comments(plain, re.compile(r"(?:^|\s)#+ ?(.*)"))


def texts_of_comments(source: str, comment: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield the first line and text of each run of lines with a comment."""
    lines = [match and match.group(1) for match in map(comment.search, source.splitlines())]
    numbered = groupby(enumerate(lines, 1), key=lambda line: line[1] is not None)
    for is_comment, run in numbered:
        if is_comment:
            first, *rest = run
            yield first[0], "\n".join([first[1] or "", *(text or "" for _, text in rest)])


def texts_of_css(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each comment."""
    for match in re.finditer(r"/\*(.*?)\*/", source, re.DOTALL):
        yield source.count("\n", 0, match.start()) + 1, match.group(1)


READERS: dict[str, Callable[[str], Iterator[tuple[int, str]]]] = {
    ".py": texts_of_python,
    ".md": texts_of_markdown,
    ".yaml": texts_of_yaml,
    ".css": texts_of_css,
    ".js": lambda source: texts_of_comments(source, re.compile(r"(?:^|\s)// ?(.*)")),
    ".sh": lambda source: texts_of_comments(source, re.compile(r"(?:^|\s)#+(?!!) ?(.*)")),
}


def findings(path: Path) -> Iterator[str]:
    """Yield each finding of a file as `path:line: finding`."""
    source = path.read_text()
    for line, text in READERS[path.suffix](source):
        yield from (f"{path}:{line}: {finding}" for finding in findings_in_text(text))
    if path.suffix == ".py":
        for line, name in names_of_python(source):
            if NAMES.match(name) and not path.name.endswith("messages.py"):  # a class there names a message
                yield f"{path}:{line}: name {name!r} is no term of the field"


def checked_files(arguments: list[str]) -> Iterator[Path]:
    """Yield the files under version control that the lint covers, below the given paths."""
    listed = subprocess.run(["git", "ls-files", "--", *arguments], check=True, capture_output=True, text=True)
    for name in listed.stdout.splitlines():
        if Path(name).suffix in READERS and name not in GENERATED and name != "tests/plain_english.py":
            yield Path(name)


def main(arguments: list[str]) -> int:
    """Print all findings and return the exit code."""
    found = [finding for path in checked_files(arguments) if path.is_file() for finding in findings(path)]
    for finding in found:
        sys.stdout.write(f"{finding}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
