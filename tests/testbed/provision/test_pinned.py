"""Every download that is executed is pinned by a hash: Python packages, their build tools, and actions."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
SCRIPTS = (
    *("Makefile", "Vagrantfile", "README.md", "CONTRIBUTING.md"),
    *("docs/**/*.md", "testbed/**/*.sh", "testbed/**/*.rb", "systems/**/*.sh", "systems/**/*.md"),
    *("tests/**/*.sh", "tests/**/*.rb", ".github/**/*"),
)
"""Files with set-up commands."""
PIP = re.compile(r"(?:\$\(PIP\)|\bpip3? (?:install|wheel|download))(?P<options>[^\n&;]*)")
DEFINITION = " --quiet --disable-pip-version-check --no-deps"
"""The options of the Makefile's PIP."""
PIN = re.compile(r"^ *(?:- )?uses: +(?P<action>\S+)(?P<comment>.*)$", re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    """Yield each command of pip: its file and options."""
    found = []
    for path in sorted({path for pattern in SCRIPTS for path in PROJECT.glob(pattern) if path.is_file()}):
        if "node_modules" in path.parts:
            continue
        text = path.read_text().replace("\\\n", " ")
        found += [(str(path.relative_to(PROJECT)), each["options"]) for each in PIP.finditer(text)]
    return found


def test_pip_installs_and_builds_only_with_hashes() -> None:
    found = [each for each in commands() if each[1] != DEFINITION]
    assert len(found) >= 4, "the Makefile's are seen"
    for file, options in found:
        assert "--require-hashes" in options or "--editable ." in options, (file, options)
        assert "--no-build-isolation" in options or "--only-binary :all:" in options, (file, options)


def test_build_tools_are_pinned_with_a_hash_and_come_first() -> None:
    """Read them from requirements.txt as the Makefile does."""
    requirements = (PROJECT / "requirements.txt").read_text()
    hashes = r"(?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+"
    assert re.search(r"^setuptools==\S+ \\\n" + hashes, requirements, re.MULTILINE)
    recipe = (PROJECT / "Makefile").read_text().partition("$(PACKAGES): ")[2].partition("\n\n")[0]
    first, second = recipe.index("-r $(VENV)/backend.txt"), recipe.index("-r requirements.txt")
    assert recipe.index("'/^setuptools==/,/[^\\\\]$$/p'") < first < second


@pytest.mark.parametrize("workflow", sorted((PROJECT / ".github/workflows").iterdir()), ids=str)
def test_actions_have_a_full_hash_with_the_version_in_a_comment(workflow: Path) -> None:
    found = list(PIN.finditer(workflow.read_text()))
    assert found
    for each in found:
        assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", each["action"]), each["action"]
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", each["comment"]), each["action"]
