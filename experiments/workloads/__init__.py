"""What is published and who is to get it, by kind: `kinds` chooses, a file each says the rest."""
