"""XML of users, without document types: no format here needs one, and entities could expand without end."""

from xml.etree import ElementTree

from topologies.errors import InputError


class _WithoutDocumentType(ElementTree.TreeBuilder):
    """A builder of elements that refuses a document type as soon as it begins."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = file

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        """Refuse the declaration."""
        raise InputError(self._file, None, "", "has a document type definition, which is refused: remove it")


def parsed_xml(content: bytes | str, file: str) -> ElementTree.Element:
    """Return the root element. file: its name in errors. Raises InputError."""
    parser = ElementTree.XMLParser(target=_WithoutDocumentType(file))  # noqa: S314 (no DTD: no entities)
    try:
        return ElementTree.fromstring(content, parser)  # noqa: S314
    except ElementTree.ParseError as error:
        raise InputError(file, error.position[0], "", f"not valid XML: {error}") from None
    except (ValueError, LookupError) as error:  # an encoding that is unknown or of several bytes
        raise InputError(file, None, "", f"not valid XML: {error}") from None
