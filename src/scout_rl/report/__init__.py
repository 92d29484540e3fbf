"""From records to tables, figures, one page and a diagnosis: NumPy and matplotlib alone, no simulator, no learner."""
