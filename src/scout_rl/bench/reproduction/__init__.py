"""Our results beside the paper's: verdicts, pairs of runs, and the pages made from them."""
