"""Extensions of the analysis by systems."""
