"""How a node sheds children: bottleneck remover, collapse, growth and shrinking (2002, IV.E and F)."""
