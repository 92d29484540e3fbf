"""The paper's benchmark: settings, families, learners, runs, campaigns, and how they compare with the paper."""
