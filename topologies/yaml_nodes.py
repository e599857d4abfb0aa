"""YAML text as a tree of nodes, with their lines.

libyaml, if PyYAML has it, parses events in an eighth of the time that Python takes. Python composes nodes
from them, so that text nested too deeply is a RecursionError (libyaml's own nodes would overflow the stack).
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
    """Return the root of a text's only document; None for empty text. Raises YAMLError or RecursionError.

    Text that libyaml refuses is read again by Python, whose messages are more specific.
    """
    if yaml.__with_libyaml__:
        try:
            return _EventsOfLibyaml(text).get_single_node()
        except yaml.YAMLError:
            pass
    return yaml.compose(text, Loader=yaml.SafeLoader)
