"""Whether a sandbox can be made, and the remedy if not."""

from pathlib import Path

import pytest

from testbed.errors import MachineError
from testbed.sandbox.commands import sandbox_command
from testbed.sandbox.requirements import check_tools, missing_tools, needs_user_namespace, why_forbidden

ALL_CAPABILITIES = 0x1FFFFFFFFFF


def switches(folder: Path, **values: int) -> Path:
    for name, value in values.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{value}\n")
    return folder


def test_root_needs_no_user_namespace():
    assert not needs_user_namespace(ALL_CAPABILITIES)
    assert "--user" not in sandbox_command(["true"], user_namespace=False)


def test_other_users_and_root_without_network_rights_need_a_user_namespace():
    net_admin = 1 << 12
    assert needs_user_namespace(0)
    assert needs_user_namespace(ALL_CAPABILITIES & ~net_admin)
    assert {"--user", "--map-current-user", "--keep-caps"} <= set(
        sandbox_command(["true"], user_namespace=True)
    )


@pytest.mark.parametrize(
    ("switch", "value", "advice"),
    [
        ("user__max_user_namespaces", 0, "sudo sysctl user.max_user_namespaces="),
        ("kernel__unprivileged_userns_clone", 0, "sudo sysctl kernel.unprivileged_userns_clone=1"),
        (
            "kernel__apparmor_restrict_unprivileged_userns",
            1,
            "kernel.apparmor_restrict_unprivileged_userns=0",
        ),
    ],
)
def test_a_forbidding_sysctl_is_named_with_the_remedy(tmp_path, switch, value, advice):
    said = why_forbidden(switches(tmp_path, **{switch: value}))
    assert said is not None
    assert advice in said


def test_a_missing_program_is_named_with_its_package(tmp_path):
    tools = {"no-such-program": "its-package", "sh": "dash"}
    assert missing_tools(tools) == ["`no-such-program` (Debian and Ubuntu: package its-package)"]
    with pytest.raises(MachineError, match=r"no-such-program.*its-package"):
        check_tools(tools)


def test_system_programs_are_found_though_path_lacks_their_directory(tmp_path):
    assert missing_tools({"ldconfig": "libc-bin"}, {"PATH": str(tmp_path)}) == []
