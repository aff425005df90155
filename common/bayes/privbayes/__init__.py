"""PrivBayes [Zhang17]: public decisions, scores, greedy search, the fitted model."""
