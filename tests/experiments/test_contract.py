"""An experiment may require less of a system than it promises, never more, and the plan shows it."""

import pytest
from pydantic_core import PydanticCustomError

from experiments.contract import differences, loosened
from experiments.declared import Contract
from experiments.loader import load_experiment
from testbed.cli import main
from testbed.planning import make_plan
from topologies.errors import InputError
from topologies.loader import load_topology

PROMISED = Contract(order="stream", delivery="exactly-once", survives=("cut", "kill"), settle_us=1_000_000)


def test_an_experiment_may_require_less_than_the_contract():
    asked = loosened(
        PROMISED, {"order": "none", "delivery": "at-most-once", "survives": ["cut"], "settle": "3s"}
    )
    assert asked == Contract(order="none", delivery="at-most-once", survives=("cut",), settle_us=3_000_000)
    assert differences(PROMISED, asked) == [
        "order none instead of stream",
        "delivery at-most-once instead of exactly-once",
        "survives cut instead of cut and kill",
        "settle 3 s instead of 1 s",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"survives": ["cut", "set"]}, "asks for more than the system promises"),
        ({"audience": "topic"}, "cannot be changed"),
        ({"survives": ["thunder"]}, "there is no such fault, thunder"),
        ({"delivery": "maybe"}, "should be one of exactly-once"),
    ],
)
def test_requiring_more_than_the_contract_is_refused(given, said):
    with pytest.raises(PydanticCustomError) as error:
        loosened(PROMISED, given)
    assert said in error.value.context["message"]


def test_a_contract_that_survives_an_unknown_fault_is_refused():
    promised = Contract("sent", "all", "beginning", "stream", "at-most-once", survives=("cuts",))
    with pytest.raises(PydanticCustomError, match="survive an unknown kind of fault, cuts: did you mean cut"):
        loosened(promised, {})


def test_a_plan_states_the_loosened_contract(capsys):
    experiment = load_experiment("link-failure", ["contract={survives: [], order: none}"])
    plan = make_plan(experiment, load_topology(experiment.topology), seed=None, links_kind="auto")
    assert plan.declared.contract.survives == ()
    assert main.run(["plan", "link-failure", "--set", "contract={survives: [], order: none}"]) == 0
    less = "contract loosened: order none instead of stream, survives no fault instead of all faults"
    assert less in capsys.readouterr().out


def test_a_stricter_contract_is_refused_with_its_line():
    with pytest.raises(InputError, match=r"contract.order: asks for more than the system promises"):
        load_experiment("link-failure", ["contract={order: total}"])
