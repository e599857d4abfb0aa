"""`cutset dissector` writes what Wireshark and readers need."""

from testbed.cli import main


def test_the_dissector_is_printed_for_the_systems_port(capsys):
    assert main.run(["dissector"]) == 0
    script = capsys.readouterr().out
    assert "port = 7000," in script
    assert 'name = "SPARSE_EVENTS"' in script


def test_the_table_of_messages_is_markdown(capsys):
    assert main.run(["dissector", "--system", "sprinkler", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("# Sprinkler's messages\n")


def test_an_unknown_system_is_bad_input(capsys):
    assert main.run(["dissector", "--system", "chord"]) == 2
    assert "no system 'chord', but sprinkler" in capsys.readouterr().err


def test_a_missing_directory_is_bad_input_and_not_created(tmp_path, capsys):
    assert main.run(["dissector", "--output", str(tmp_path / "none" / "x.lua")]) == 2
    said = capsys.readouterr().err
    assert f"its directory does not exist: create it with `mkdir -p {tmp_path / 'none'}`" in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
