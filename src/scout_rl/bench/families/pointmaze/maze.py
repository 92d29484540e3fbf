"""The maze as geometry: walls, free cells, the ball's shortest way, and where it may touch a wall."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import csgraph_from_dense, dijkstra

from scout_rl.files.refusal import Refusal

Points = NDArray[np.float64]

CLEARANCE = 0.2
"""The way keeps this distance from walls along each axis; the ball's radius is 0.1."""
TOUCH = 0.103
"""Within this distance of a wall there may be a contact: radius and margin are 0.102."""
TIMESTEP, PUSH = 0.01, 0.0035
"""Seconds per step, and metres that the strongest push adds to a step: 141 N on 4.19 kg give 0.0034."""
RASTER = 0.02


class Maze:
    """A grid of unit cells around the origin, as the stock maze lays it out."""

    def __init__(self, walls: NDArray[np.bool_]) -> None:
        self.walls = walls
        """bool[rows, columns]."""
        self.centre = np.array([walls.shape[1] / 2, walls.shape[0] / 2])

    def cell_centre(self, cells: NDArray[np.int64]) -> Points:
        """[n, 2] (x, y) of cells [n, 2] (row, column)."""
        row, column = cells[:, 0], cells[:, 1]
        return np.stack([column + 0.5 - self.centre[0], self.centre[1] - (row + 0.5)], axis=1)

    @cached_property
    def free_cells(self) -> NDArray[np.int64]:
        """int[k, 2]: row and column of every free cell."""
        return np.argwhere(~self.walls)

    @cached_property
    def boxes(self) -> Points:
        """[k, 2]: the centres of the wall blocks, each of side 1."""
        return self.cell_centre(np.argwhere(self.walls))

    def is_free(self, points: Points) -> NDArray[np.bool_]:
        """bool[n]: further than the clearance from every wall, and inside the maze."""
        away = np.abs(points[:, None] - self.boxes).max(axis=-1) >= 0.5 + CLEARANCE - 1e-9
        return np.asarray(away.all(axis=1) & (np.abs(points) < self.centre).all(axis=1))

    def is_inside(self, points: Points) -> NDArray[np.bool_]:
        """bool[n]: inside the maze, the ball's centre at least half its radius off every wall."""
        away = np.abs(points[:, None] - self.boxes).max(axis=-1) >= 0.55
        return np.asarray(away.all(axis=1) & (np.abs(points) < self.centre).all(axis=1))

    @cached_property
    def free_speed_squared(self) -> Points:
        """[y, x] over squares of side ``RASTER``: the squared speed below which a ball touches no wall.

        It holds for a ball anywhere in the square, now and after one step; -1 where the ball may touch a wall now.
        """
        columns, rows = (np.arange(round(2 * c / RASTER)) for c in self.centre)
        x, y = (columns + 0.5) * RASTER - self.centre[0], (rows + 0.5) * RASTER - self.centre[1]
        away = np.full((len(rows), len(columns)), np.inf)
        for box in self.boxes:
            dx, dy = (np.maximum(np.abs(v - b) - 0.5 - RASTER / 2, 0) for v, b in zip((x, y), box, strict=True))
            away = np.minimum(away, np.hypot(dx, dy[:, None]))
        speed = (away - TOUCH - PUSH) / TIMESTEP
        return np.where(speed > 0, speed * speed, -1.0)

    @cached_property
    def _flat_raster(self) -> tuple[Points, int]:
        return self.free_speed_squared.ravel(), self.free_speed_squared.shape[1]

    def may_touch(self, points: Points, speed_squared: Points) -> NDArray[np.bool_]:
        """bool[n]: whether a ball may touch a wall now or after one step."""
        column, row = ((points + self.centre) * (1 / RASTER)).astype(np.int64).T
        flat, width = self._flat_raster
        return np.asarray(flat.take(row * width + column) <= speed_squared)

    @cached_property
    def corners(self) -> Points:
        """[k, 2]: where a shortest way can bend: the clearance away from each convex corner of a wall."""
        corners = []
        for row, column in np.argwhere(self.walls):
            for down, right in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
                around = [(row + down, column), (row, column + right), (row + down, column + right)]
                if all(self._is_open(r, c) for r, c in around):
                    centre = self.cell_centre(np.array([[row, column]]))[0]
                    corners.append(centre + (0.5 + CLEARANCE) * np.array([right, -down]))
        return np.array(corners)

    def _is_open(self, row: int, column: int) -> bool:
        rows, columns = self.walls.shape
        return 0 <= row < rows and 0 <= column < columns and not self.walls[row, column]

    def _off_the_wall(self, point: Points) -> Points:
        """The first free point on the line to the centre of the point's cell."""
        cell = np.array([[np.floor(self.centre[1] - point[1]), np.floor(point[0] + self.centre[0])]], dtype=np.int64)
        line = np.linspace(point, self.cell_centre(cell)[0], 50)
        free = self.is_free(line)
        if not free.any():
            raise Refusal(f"the point {point.round(3).tolist()} is in a wall or outside the maze.")
        return np.asarray(line[np.argmax(free)])

    def sees(self, a: Points, b: Points) -> NDArray[np.bool_]:
        """bool[n]: whether the segments a-b [n, 2] keep the clearance from every wall (slab test)."""
        half = 0.5 + CLEARANCE - 1e-9
        way = (b - a)[:, None]
        safe = np.where(np.abs(way) < 1e-12, 1e-12, way)
        offset = self.boxes - a[:, None]
        enter, leave = (offset - half) / safe, (offset + half) / safe
        first = np.minimum(enter, leave).max(axis=-1)
        last = np.maximum(enter, leave).min(axis=-1)
        return np.asarray(~((first < last) & (last > 0) & (first < 1)).any(axis=1))

    @cached_property
    def _corner_distances(self) -> Points:
        """[k, k]: straight distances between corners that see each other, else infinite."""
        return self._distances(self.corners, self.corners)

    def _distances(self, a: Points, b: Points) -> Points:
        first, second = (m.reshape(-1, 2) for m in (np.repeat(a, len(b), axis=0), np.tile(b, (len(a), 1))))
        length = np.linalg.norm(first - second, axis=1)
        return np.where(self.sees(first, second), length, np.inf).reshape(len(a), len(b))

    def way(self, start: Points, goal: Points) -> Points:
        """[k, 2]: the shortest way as a chain of straight pieces with both ends (Dijkstra over corners).

        A start closer to a wall than the clearance first moves towards the centre of its cell.
        """
        if not self.is_free(start[None])[0]:
            return np.concatenate([start[None], self.way(self._off_the_wall(start), goal)])
        if bool(self.sees(start[None], goal[None])[0]):
            return np.stack([start, goal])
        to_corner, from_corner = (self._distances(p[None], self.corners)[0] for p in (start, goal))
        graph = np.pad(self._corner_distances, ((1, 0), (1, 0)), constant_values=np.inf)  # node 0 is the start
        graph[0, 1:] = to_corner
        best, before = dijkstra(csgraph_from_dense(graph, null_value=np.inf), indices=0, return_predecessors=True)
        ends = best[1:] + from_corner
        chain = [int(np.argmin(ends)) + 1]
        if not np.isfinite(ends[chain[0] - 1]):
            raise Refusal(f"there is no way from {start.round(3).tolist()} to {goal.round(3).tolist()}.")
        while before[chain[-1]] > 0:
            chain.append(int(before[chain[-1]]))
        return np.concatenate([start[None], self.corners[np.array(chain[::-1]) - 1], goal[None]])


def way_length(way: Points) -> float:
    """The length of a chain of straight pieces."""
    return float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum())


def along(way: Points, distance: float) -> Points:
    """The point at that distance from the start of the way, or its end."""
    pieces = np.linalg.norm(np.diff(way, axis=0), axis=1)
    reached = np.concatenate([[0.0], np.cumsum(pieces)])
    return np.array([np.interp(distance, reached, way[:, axis]) for axis in (0, 1)])
