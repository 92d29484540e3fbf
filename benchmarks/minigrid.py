"""Run ``python benchmarks/minigrid.py``; what is measured stands in minigrid_speed.py."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # A script's own folder comes first on the path, where this file would hide the package `minigrid`.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    from benchmarks.minigrid_speed import main

    main()
