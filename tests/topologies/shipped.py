"""The names of the topologies that come with Cutset."""

from topologies.document import files_in
from topologies.loader import FOLDER

NAMES = [file.stem for file in files_in(FOLDER)]
