"""The live page over run folders: ``scout watch``. `api.py` is the contract of its HTTP interface."""
