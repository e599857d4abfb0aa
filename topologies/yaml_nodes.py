"""YAML text as a tree of nodes, with their lines.

libyaml, where PyYAML has it, finds the events in an eighth of the time that Python takes. Python makes nodes
of them, so that text nested too deeply is a RecursionError (libyaml's own nodes would overflow the stack).
"""

import yaml
from yaml.composer import Composer
from yaml.resolver import Resolver

if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _EventsOfLibyaml(Composer, CParser, Resolver):
        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            Composer.__init__(self)
            Resolver.__init__(self)


def compose(text: str) -> yaml.Node | None:
    """The root of a text's only document; None of an empty text. Raises YAMLError or RecursionError.

    What libyaml refuses is read again by Python, whose messages say more.
    """
    if yaml.__with_libyaml__:
        try:
            return _EventsOfLibyaml(text).get_single_node()
        except yaml.YAMLError:
            pass
    return yaml.compose(text, Loader=yaml.SafeLoader)
