"""The installer names missing packages with reasons, and installs nothing if none are missing or it may
not.
"""

import subprocess
from pathlib import Path

import pytest

from testbed.doctor import PACKAGES, Package, packages
from testbed.machines.facts import MACHINE_TOOLS

SCRIPT = PACKAGES.with_name("provision.sh")
BASICS = ("sh", "dirname", "readlink", "sed", "id", "mktemp", "rm")


def tools(folder: Path, *names: str) -> Path:
    """Create a folder with only these programs, for use as PATH."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(
            next(
                Path(place) / name
                for place in ("/usr/bin", "/bin", "/usr/sbin")
                if (Path(place) / name).exists()
            )
        )
    return folder


def java(home: Path, path: Path, *, version: str) -> None:
    """Create a Java of that version, by its `release` file."""
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\n')
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "bin" / "java").chmod(0o755)
    (path / "java").symlink_to(home / "bin" / "java")


def prove(package: Package, path: Path) -> None:
    """Make that package seem installed."""
    proof = path / package.proof.lstrip("/")
    proof.parent.mkdir(parents=True, exist_ok=True)
    proof.symlink_to("/bin/true")


def provision(job: str, path: Path, *, uid: int) -> subprocess.CompletedProcess[str]:
    """Run the script without its additions to PATH, with files looked up in `path`, as another user."""
    fake_id = path / "id"
    fake_id.unlink()
    fake_id.write_text(f"#!/bin/sh\necho {uid}\n")
    fake_id.chmod(0o755)
    text = SCRIPT.read_text().replace("PATH=$PATH:/usr/sbin:/sbin", "")
    copy = path / "provision.sh"
    copy.write_text(text)
    (path / PACKAGES.name).write_text(PACKAGES.read_text().replace(" /", f" {path}/"))
    return subprocess.run(
        ["/bin/sh", str(copy), job],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_missing_packages_are_named_with_their_reason_and_exit_code_3_without_sudo(tmp_path: Path) -> None:
    result = provision("run", tools(tmp_path / "bin", *BASICS), uid=1000)
    assert result.returncode == 3
    assert "missing: tcpdump (captures with nanosecond timestamps)" in result.stderr
    assert "ask your administrator for:" in result.stderr
    assert "chromium" not in result.stderr


def test_a_machine_gets_all_packages_that_machines_are_examined_for() -> None:
    provided = {package.name for package in packages() if package.job == "machine"}
    assert set(MACHINE_TOOLS.values()) <= provided


@pytest.mark.parametrize(("job", "is_got"), [("run", False), ("test", False), ("systems", True)])
def test_packages_that_get_modules_serve_only_systems_under_test(
    tmp_path: Path, job: str, is_got: bool
) -> None:
    said = provision(job, tools(tmp_path / "bin", *BASICS), uid=1000).stderr
    assert ("missing: npm" in said) == is_got


def test_an_unknown_job_is_refused(tmp_path: Path) -> None:
    result = provision("runs", tools(tmp_path / "bin", *BASICS), uid=1000)
    assert (result.returncode, result.stderr) == (
        2,
        "cutset: no job runs: known are machine, run, images, routing, systems, test\n",
    )


def test_only_missing_packages_are_installed(tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", *BASICS, "env")
    calls = tmp_path / "calls"
    fake(path, "apt-get", f'echo "$@" >>{calls}')
    for package in packages():
        if package.proof not in {"tcpdump", "java"} and package.job != "test":
            prove(package, path)
    result = provision("run", path, uid=0)
    assert result.returncode == 0, result.stderr
    installed = calls.read_text().splitlines()[-1]
    assert installed.endswith("tcpdump openjdk-17-jre-headless")


def fake(path: Path, name: str, text: str) -> None:
    (path / name).write_text(f"#!/bin/sh\n{text}\n")
    (path / name).chmod(0o755)


SERVICES = (
    "mosquitto.service nats-server.service redis-server.service etcd.service "
    "rabbitmq-server.service epmd.service epmd.socket ssh.service ssh.socket"
)


@pytest.mark.parametrize(
    ("apt", "code", "said"),
    [
        ("exit 0", 0, ["mask", "unmask", "disable"]),
        ("exit 100", 3, ["mask"]),
        ("kill -TERM $PPID; exit 1", 143, ["mask"]),
        ("kill -INT $PPID; exit 1", 130, ["mask"]),
    ],
    ids=["installed", "failed", "ended", "interrupted"],
)
def test_no_server_is_started_or_left_masked(tmp_path: Path, apt: str, code: int, said: list[str]) -> None:
    path, calls = tools(tmp_path / "bin", *BASICS, "env", "tail"), tmp_path / "calls"
    fake(path, "apt-get", apt)
    fake(path, "systemctl", f'echo "$@" >>{calls}')
    assert provision("test", path, uid=0).returncode == code
    assert calls.read_text().splitlines() == [f"{verb} {SERVICES}" for verb in (*said, "unmask")]


def test_the_check_is_silent_if_nothing_is_missing(tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", *BASICS)
    for package in packages():
        if package.proof != "java":
            prove(package, path)
    java(tmp_path / "java", path, version="21.0.2")
    result = provision("test", path, uid=1000)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_java_that_is_too_old_counts_as_missing(tmp_path: Path) -> None:
    path = tools(tmp_path / "bin", *BASICS)
    java(tmp_path / "java", path, version="11.0.2")
    assert "openjdk-17-jre-headless" in provision("run", path, uid=1000).stderr


def test_the_project_names_no_registry_host() -> None:
    root = PACKAGES.parents[2]
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False)
    names = listed.stdout.split() or ["requirements.txt", "Makefile"]
    hosts = ["pypi" + ".org", "python" + "hosted", "deb." + "debian", "registry." + "npmjs"]
    for name in names:
        path = root / name
        if path.suffix in {".txt", ".toml", ".md", ".sh", ".yaml", ".py", ""} and path.is_file():
            text = path.read_text(errors="replace")
            assert not [host for host in hosts if host in text], f"{name} names a registry"
