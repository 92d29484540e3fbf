"""From records to tables, figures, one page and a diagnosis; needs only NumPy and matplotlib."""
