"""Memory that moves to huge pages keeps its content."""

from node.sim import huge_pages
from node.sim.huge_pages import PAGE_BYTES, use_huge_pages


def test_memory_in_huge_pages_keeps_its_content():
    memory = bytearray(range(256)) * (4 * PAGE_BYTES // 256)
    use_huge_pages()
    assert memory == bytearray(range(256)) * (4 * PAGE_BYTES // 256)


def test_without_proc_memory_stays_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(huge_pages, "MAPS", tmp_path / "maps")
    use_huge_pages()
