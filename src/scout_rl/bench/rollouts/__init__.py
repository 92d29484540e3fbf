"""From cells to episodes: on the device, on the host, in the stock environment; held-out evaluation; video."""
