"""Recovery: when each fault was noticed, when events flowed again, and when all was caught up."""
