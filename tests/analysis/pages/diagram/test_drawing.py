"""The picture: time downwards, one line per host, lost messages end in a cross, omissions are listed."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from analysis.pages.charting.chart_model import ChartSpan
from analysis.pages.diagram.arrow_drawing import MEMBERS_DRAWN, MEMBERS_OF_PICTURE
from analysis.pages.diagram.canvas import OTHER, colours
from analysis.pages.diagram.drawing import diagram_svg
from analysis.pages.diagram.ranks import ranks_of
from analysis.pages.diagram.scene import Arrow, Flight, Lifeline, Scene

SVG = "{http://www.w3.org/2000/svg}"
X, Y, Z = (Lifeline(f"{region}-proxy-0", region, "#0072B2") for region in "xyz")


def arrow(
    sender: Lifeline, receiver: Lifeline, sent_s: float, took_s: float | None = 0.04, **more: str
) -> Arrow:
    flight = Flight(sent_s, None if took_s is None else sent_s + took_s)
    fate = "lost" if took_s is None else "arrived"
    return Arrow(
        more.get("type", "EVENTS"),
        sender.host,
        receiver.host,
        fate,
        more.get("label", f"EVENTS s2 [{sent_s:g}]"),
        (flight,),
        0.04,
    )


RANKS = ranks_of("sprinkler")
SCENE = Scene(
    title="link-failure, stream s2",
    from_s=10.0,
    to_s=11.0,
    lifelines=(X, Y, Z),
    arrows=(
        arrow(Y, X, 10.1),
        arrow(Y, Z, 10.5, None),
        arrow(Z, X, 10.8, type="SUBSCRIBE", label="SUBSCRIBE s2 after 3"),
    ),
    disturbances=(ChartSpan("cut y-z", 10.4, None),),
    left_out=("12 messages within regions",),
    messages=3,
    ranks=RANKS,
    command="cutset diagram latest --from 10 --to 11",
)


def parsed(scene: Scene) -> ElementTree.Element:
    return ElementTree.fromstring(diagram_svg(scene).svg)


def texts(scene: Scene) -> list[str]:
    return ["".join(each.itertext()) for each in parsed(scene).iter(f"{SVG}text")]


def message_line(scene: Scene, number: int) -> dict[str, float]:
    """Return the line of the scene's arrow with that number."""
    groups = [group for group in parsed(scene).iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    title = scene.arrows[number].label
    group = next(group for group in groups if (group.findtext(f"{SVG}title") or "").startswith(title))
    line = group.find(f"{SVG}line")
    assert line is not None
    return {name: float(line.attrib[name]) for name in ("x1", "y1", "x2", "y2")}


def lifeline_x(scene: Scene) -> list[float]:
    return [
        float(each.attrib["x1"]) for each in parsed(scene).iter(f"{SVG}line") if each.get("class") == "life"
    ]


def test_arrows_run_from_sending_to_complete_arrival() -> None:
    x, y, _ = lifeline_x(SCENE)
    first, subscribe = message_line(SCENE, 0), message_line(SCENE, 2)
    assert (first["x1"], first["x2"]) == (y, x)
    assert first["y1"] < first["y2"] < subscribe["y1"] < subscribe["y2"]
    assert (first["y2"] - first["y1"]) == pytest.approx(subscribe["y2"] - subscribe["y1"], abs=0.2)


def test_the_arrow_of_a_lost_message_ends_in_a_cross() -> None:
    _, y, z = lifeline_x(SCENE)
    assert y < message_line(SCENE, 1)["x2"] < z
    crosses = [each for each in parsed(SCENE).iter(f"{SVG}path") if each.get("class") == "cross"]
    assert len(crosses) == 2  # and in the legend
    without = replace(SCENE, arrows=SCENE.arrows[:1])
    assert not [each for each in parsed(without).iter(f"{SVG}path") if each.get("class") == "cross"]


def test_an_arrow_with_unobserved_arrival_ends_in_a_ring() -> None:
    scene = replace(SCENE, arrows=(replace(arrow(Y, Z, 10.5, None), fate="unseen"),))
    rings = [each for each in parsed(scene).iter(f"{SVG}circle") if each.get("class") == "message"]
    assert float(rings[0].attrib["cx"]) == lifeline_x(scene)[2]
    assert "receiver not captured" in texts(scene)


def test_hosts_faults_labels_and_what_is_left_out_are_reported() -> None:
    said = texts(SCENE)
    assert {"x", "y", "z", "proxy-0", "cut y-z", "SUBSCRIBE s2 after 3", "SUBSCRIBE", "lost"} <= set(said)
    assert "Left out: 12 messages within regions" in said
    assert SCENE.command in said


def test_the_fault_is_a_band_from_its_start_to_the_lower_edge() -> None:
    (band,) = (each for each in parsed(SCENE).iter(f"{SVG}rect") if each.get("class") == "band")
    lost = message_line(SCENE, 1)
    top, height = float(band.attrib["y"]), float(band.attrib["height"])
    assert message_line(SCENE, 0)["y2"] < top < lost["y1"]
    assert top + height > message_line(SCENE, 2)["y2"]


def test_a_run_of_messages_is_one_thick_arrow_with_a_line_for_each() -> None:
    flights = tuple(Flight(10.1 + 0.05 * n, 10.14 + 0.05 * n) for n in range(6))
    thick = replace(SCENE.arrows[0], flights=flights, label="6 x EVENTS s2 [1..6000]")
    scene = replace(SCENE, arrows=(thick,), messages=6)
    assert "6 x EVENTS s2 [1..6000]" in texts(scene)
    members = [each for each in parsed(scene).iter(f"{SVG}line") if each.get("class") == "member"]
    assert len(members) == 6
    assert sum(each.get("class") == "thick" for each in parsed(scene).iter(f"{SVG}polygon")) == 1


def test_fine_lines_are_bounded_and_short_runs_get_theirs_first() -> None:
    def run(sender: Lifeline, receiver: Lifeline, count: int) -> Arrow:
        flights = tuple(Flight(10.0 + n / count, 10.04 + n / count) for n in range(count))
        return replace(arrow(sender, receiver, 10.0), flights=flights)

    long = [run(Y, X, 2 * MEMBERS_DRAWN) for _ in range(20)]
    scene = replace(SCENE, arrows=(*long, run(Y, Z, 5)))
    members = [each for each in parsed(scene).iter(f"{SVG}line") if each.get("class") == "member"]
    assert len(members) <= MEMBERS_OF_PICTURE + len(scene.arrows)  # and each run's last message
    _, _, z = lifeline_x(scene)
    assert sum(float(each.attrib["x2"]) == z for each in members) == 5
    without = 20 * 2 * MEMBERS_DRAWN + 5 - len(members)
    said = re.sub(r"\s", "", "".join(texts(scene)))
    assert f"thelinesof{without}messageswithinthickarrows(ashortertimewindowshowsthem)" in said


def test_labels_without_room_are_counted_and_stay_as_tooltips() -> None:
    crowd = tuple(arrow(Y, X, 10.5 + n * 1e-5, label=f"NOTIFY s{n} of many") for n in range(40))
    scene = replace(SCENE, arrows=crowd)
    root = parsed(scene)
    tooltips = [each.text or "" for each in root.iter(f"{SVG}title")]
    assert len(tooltips) == 40
    labels = sum(each.get("class") == "label" for each in root.iter(f"{SVG}text"))
    said = re.search(r"(\d+)\slabels", " ".join(texts(scene)))
    assert said
    assert labels + int(said[1]) == 40


def test_types_have_distinct_stable_colours() -> None:
    some, more = (
        colours(["EVENTS", "SUBSCRIBE"], RANKS),
        colours(["EVENTS", "HELLO", "NOTIFY", "SUBSCRIBE", "VIEW"], RANKS),
    )
    assert all(more[name] == colour for name, colour in some.items())
    given = [colour for colour in more.values() if colour != OTHER]
    assert len(set(given)) == len(given)


@pytest.mark.parametrize(
    "text",
    ['"><script>boom()</script>', "' onload='boom()", '" onload="boom()', "&amp;<b>&", "\x1b]0;x\x07\udc80"],
)
def test_whatever_is_in_a_runs_tables_stays_text(text: str) -> None:
    hostile = Lifeline(text, text, text)
    sent = replace(arrow(hostile, Y, 10.2), fate=text, type=text, label=text)
    several = replace(sent, flights=tuple(Flight(10.2 + n / 50, 10.3 + n / 50) for n in range(9)))
    scene = replace(
        SCENE,
        title=text,
        lifelines=(hostile, Y, X),
        arrows=(sent, several, arrow(Y, X, 10.1)),
        disturbances=(ChartSpan(text, 10.4, None),),
        left_out=(text,),
        command=text,
    )
    found = parsed(scene)
    elements = {"svg", "style", "clipPath", "rect", "text", "line", "g", "title", "polygon", "circle", "path"}
    assert {each.tag for each in found.iter()} <= {f"{SVG}{name}" for name in elements}
    assert not [name for each in found.iter() for name in each.attrib if name.startswith("on")]
    if text.isprintable():
        assert text in "".join(found.itertext())
        assert any(text in each.get("class", "") for each in found.iter())
