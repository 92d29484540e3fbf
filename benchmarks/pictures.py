"""The pictures of the front page, from the committed records alone.

    python -m benchmarks.pictures            # docs/images/starts.gif, starts.png and solved.svg; `make pictures`
    python -m benchmarks.pictures --only solved

``starts``: where the rollouts of one run start, under `ability` and under a shared schedule, and what it brings.
``solved``: the windows that every rule needs, as a multiple of `ability`'s; the scores are those of docs/one-rule.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scout_rl.bench.reproduction import one_rule
from scout_rl.bench.reproduction.catalogue import catalogue
from scout_rl.report.measure.metrics import summarise
from scout_rl.report.measure.statistics import mean_interval
from scout_rl.report.read.runs import find, load

ROOT = Path(__file__).parents[1]
RECORDS, IMAGES = ROOT / "results-one-rule", ROOT / "docs/images"
INK, OURS, OTHERS = "#1b1f24", "#0072b2", "#d55e00"
COLOURS = "viridis"
"""Level 0, the target start, is dark; the easiest is yellow."""

SETTING, SHOWN = "multiroom", 700
RUNS = {
    "ability": f"{SETTING}/ability/102-windows1000-evaluate_every10.npz",
    "anneal": f"{SETTING}/anneal/102-windows1000-evaluate_every10-T_anneal700.npz",
}
"""Of six seeds the one whose ratio is closest to their mean; of three schedules the best on development seeds."""
EMPTY, OBJECTS = 1, {2: "#7d858f", 4: "#c8965a", 8: "#12b347"}
"""MiniGrid's numbers of what is drawn: walls, doors, the goal."""
FRAMES, FRAME_MS, LAST_MS = 44, 110, 2600
RIVALS = ("anneal", "adaback", "mixture", "learnability", "rfcl", "thompson", "random", "scout")
"""Rules that see no labels, with the constants of their papers; `anneal` with its best length."""
NAMES = {
    "multiroom": "MultiRoom",
    "doorkey": "DoorKey",
    "doorkey-split": "DoorKey, two groups",
    "doorkey-16-split": "DoorKey 16 x 16, two groups",
    "doorkey-limited": "DoorKey, 100 steps",
}
LOOKS = {
    "multiroom": ("D", "#d55e00"),
    "doorkey": ("o", "#56b4e9"),
    "doorkey-split": ("s", "#e69f00"),
    "doorkey-16-split": ("^", "#009e73"),
    "doorkey-limited": ("v", "#cc79a7"),
}


def latest_starts(run):
    """``[windows, contexts]``: the level that the context's latest rollout started from (NaN before its first)."""
    levels = np.full((run.about.windows, run.about.n_contexts), np.nan)
    levels[run.rollouts.window, run.rollouts.context] = run.rollouts.level
    for window in range(1, len(levels)):
        levels[window] = np.where(np.isnan(levels[window]), levels[window - 1], levels[window])
    return levels


class Layout(NamedTuple):
    """One start of a MiniGrid context: what stands where ``[rows, columns]``, and the agent's column and row."""

    objects: np.ndarray
    agent: tuple[int, int]


def one_instance(context=12):
    """The starts of one context, the easiest first. This one is wide and low."""
    from scout_rl.bench.families import load_bank
    from scout_rl.bench.ladders.build import Wanted, build_ladder
    from scout_rl.bench.settings.settings import setting as setting_of

    setting = setting_of(SETTING)
    contexts = {name: array[[context]] for name, array in load_bank(setting).train.contexts.items()}
    ladder, _ = build_ladder(Wanted(setting, contexts, setting.n_levels), "manual")
    return [
        Layout(ladder["grid"][0, level, :, :, 0].T, tuple(ladder["agent_pos"][0, level]))
        for level in reversed(range(setting.n_levels))
    ]


class Moving:
    """The picture that fills in: five starts of one instance, two heat maps, and held-out success below them."""

    def __init__(self, runs, layouts):
        from matplotlib import colormaps
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.runs = runs
        self.levels = {rule: latest_starts(run) for rule, run in runs.items()}
        n_levels = next(iter(runs.values())).about.n_levels
        colours = colormaps[COLOURS].resampled(n_levels)
        self.figure = Figure(figsize=(8, 5.7), dpi=100, facecolor="white")
        self.canvas = FigureCanvasAgg(self.figure)
        self._draw_layouts(layouts, colours)
        order = np.argsort(np.nanmean(self.levels["ability"], axis=0), kind="stable")
        titles = {"ability": "ability: every row at its own pace", "anneal": "anneal: one schedule for all rows"}
        self.images, self.lines, self.heads = {}, {}, []
        for place, (rule, colour) in enumerate({"ability": OURS, "anneal": OTHERS}.items()):
            axes = self.figure.add_axes((0.075 + 0.475 * place, 0.375, 0.43, 0.285))
            self.levels[rule] = self.levels[rule][:SHOWN, order].T
            self.images[rule] = axes.imshow(
                self._so_far(rule, 0),
                aspect="auto",
                interpolation="nearest",
                cmap=colours.with_extremes(bad="white"),
                vmin=-0.5,
                vmax=n_levels - 0.5,
                extent=(0, SHOWN, len(order), 0),
            )
            axes.set_title(titles[rule], loc="left", color=colour, fontsize=11, fontweight="bold", pad=7)
            axes.set_yticks([])
            _plain(axes)
            if not place:
                axes.set_ylabel(f"{len(order)} task instances,\none row each", color=INK, fontsize=9)
        axes = self.figure.add_axes((0.075, 0.085, 0.905, 0.21))
        _plain(axes)
        axes.set(xlim=(0, SHOWN), ylim=(-0.03, 1.05), yticks=(0, 0.5, 1), yticklabels=("0%", "50%", "100%"))
        axes.set_ylabel("success", color=INK, fontsize=9)
        axes.set_xlabel("training windows (16 rollouts each)", color=INK, fontsize=9)
        title = "Success on 100 new instances, always from the real start"
        axes.set_title(title, loc="left", color=INK, fontsize=10, pad=4)
        axes.axhline(0.9, color=INK, linewidth=0.7, linestyle=":")
        for rule, colour in {"ability": OURS, "anneal": OTHERS}.items():
            dash = "-" if rule == "ability" else "--"
            label = f"{rule}: solved at window {summarise(runs[rule]).solved_window}"
            (self.lines[rule],) = axes.plot([], [], dash, color=colour, linewidth=2.2, label=label)
        axes.legend(loc="lower right", frameon=False, fontsize=10)

    def frame(self, window):
        """The picture after this many windows, as an image ``[height, width, 3]``."""
        for rule, run in self.runs.items():
            self.images[rule].set_data(self._so_far(rule, window))
            seen = run.evaluated_at <= window
            worst = np.min(list(run.held_out_groups.values()), axis=0)
            self.lines[rule].set_data(run.evaluated_at[seen], worst[seen])
        self.canvas.draw()
        return np.asarray(self.canvas.buffer_rgba())[..., :3].copy()

    def _so_far(self, rule, window):
        levels = self.levels[rule].copy()
        levels[:, window:] = np.nan
        return np.ma.masked_invalid(levels)

    def _draw_layouts(self, layouts, colours):
        from matplotlib.colors import to_rgb

        title = "Five starts of one task instance. The red agent must reach the green square."
        self.figure.text(0.075, 0.963, title, color=INK, fontsize=10)
        names = ["yellow: most help", *[""] * (len(layouts) - 2), "dark: the real start"]
        for place, (layout, name) in enumerate(zip(layouts, names, strict=True)):
            axes = self.figure.add_axes((0.075 + 0.1835 * place, 0.77, 0.171, 0.175))
            y, x = np.nonzero(layout.objects != EMPTY)
            picture = np.ones((*layout.objects.shape, 3))
            for number, colour in OBJECTS.items():
                picture[layout.objects == number] = to_rgb(colour)
            axes.imshow(picture, aspect="equal")
            axes.plot(*layout.agent, "o", color="#e0001b", markersize=6)
            axes.set(xticks=[], yticks=[], xlim=(x.min() - 1.5, x.max() + 1.5), ylim=(y.max() + 1.5, y.min() - 1.5))
            for spine in axes.spines.values():
                spine.set(color=colours(len(layouts) - 1 - place), linewidth=5)
            axes.set_xlabel(name, color=INK, fontsize=9, labelpad=5)


def _plain(axes):
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK, labelsize=8)


def write_starts(folder, layouts):
    """`starts.gif` and its last frame, `starts.png`."""
    from PIL import Image

    moving = Moving({rule: load(RECORDS / path) for rule, path in RUNS.items()}, layouts)
    windows = np.linspace(0, SHOWN, FRAMES + 1).round().astype(int)
    frames = [Image.fromarray(moving.frame(window)) for window in windows]
    frames[-1].save(folder / "starts.png", optimize=True)
    palette = frames[-1].quantize(128, dither=Image.Dither.NONE)
    colours = np.array(palette.getpalette()).reshape(-1, 3)
    colours[colours.min(axis=1) > 245] = 255  # the background stays white
    palette.putpalette(colours.ravel().tolist())
    whole_first = frames[-1:] + frames[:-1]  # where pictures do not move, the first one is shown
    small = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in whole_first]
    times = [LAST_MS] + [FRAME_MS] * FRAMES
    small[0].save(
        folder / "starts.gif", save_all=True, append_images=small[1:], duration=times, loop=0, optimize=True, disposal=1
    )


class Rival(NamedTuple):
    """A rule beside `ability`: windows to solve, in windows of `ability`."""

    rule: str
    pooled: tuple[float, float, float]
    """Over settings and seeds: geometric mean and Student's 95% interval."""
    by_setting: dict[str, tuple[float, float, float]]


def rivals(rows):
    """One value per rule of `RIVALS`, the closest first; ``rows`` are those of docs/one-rule.md."""
    result = []
    for rule in RIVALS:
        ratios = {}
        for setting, part in rows.items():
            kept = one_rule.evaluated(part)
            (ours,) = (row for row in kept if row.rule == one_rule.OURS)
            (theirs,) = (r for r in kept if r.rule == rule and (rule == one_rule.SCHEDULED or r.label == f"`{rule}`"))
            ratios[setting] = one_rule.log_ratios(theirs.scores, ours.scores)
        both = [_times(np.concatenate(list(ratios.values()))), {s: _times(r) for s, r in ratios.items()}]
        result.append(Rival(rule, *both))
    return sorted(result, key=lambda rival: rival.pooled[0])


def _times(log_ratios):
    return tuple(float(np.exp(end)) for end in mean_interval(np.asarray(log_ratios)))


def write_solved(folder):
    """`solved.svg`: a row per rule, a mark per setting, and all settings together."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    known = catalogue()
    rows = one_rule.collect(summarise(load(path, catalogue=known)) for path in find([RECORDS]))
    rows = {setting: rows[setting] for setting in NAMES}
    own = {s: next(r for r in one_rule.evaluated(part) if r.rule == one_rule.OURS) for s, part in rows.items()}
    figure = Figure(figsize=(8, 4.6), facecolor="white")
    axes = figure.add_axes((0.125, 0.265, 0.86, 0.72))
    axes.set_xscale("log")
    axes.axvline(1, color=OURS, linewidth=2.5)
    axes.text(1.015, -0.62, "ability", color=OURS, fontsize=11, fontweight="bold", va="center")
    drawn = rivals(rows)
    for y, rival in enumerate(drawn):
        point, low, high = rival.pooled
        axes.plot([low, high], [y, y], color=INK, linewidth=7, alpha=0.2, solid_capstyle="butt")
        axes.plot([point] * 2, [y - 0.3, y + 0.3], color=INK, linewidth=2.5)
        axes.text(12.6, y, f"{point:.1f} times", color=INK, fontsize=10, va="center", ha="right", fontweight="bold")
        for setting, (times, below, above) in rival.by_setting.items():
            marker, colour = LOOKS[setting]
            face = "white" if below <= 1 <= above else colour
            axes.plot(times, y, marker, markersize=7, markeredgecolor=colour, markerfacecolor=face, markeredgewidth=1.6)
    for setting, name in NAMES.items():
        windows = one_rule.geometric_mean(own[setting].scores)
        marker, colour = LOOKS[setting]
        axes.plot([], [], marker, color=colour, markersize=7, label=f"{name} (ability: {windows:.0f})")
    axes.plot([], [], "|", color=INK, markersize=13, markeredgewidth=2.5, label="all five, with 95% interval")
    hollow = {"color": INK, "markerfacecolor": "white", "markersize": 7, "markeredgewidth": 1.6}
    axes.plot([], [], "o", **hollow, label="hollow: interval includes 1")
    axes.set_yticks(range(len(drawn)), [rival.rule for rival in drawn])
    axes.set(xlim=(0.8, 13), ylim=(len(drawn) - 0.5, -0.95))
    ticks = (1, 1.5, 2, 3, 4, 6, 8)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("windows until solved, as a multiple of ability's (further right: slower)", color=INK, fontsize=10)
    axes.grid(axis="x", color=INK, alpha=0.13)
    axes.set_axisbelow(True)
    _plain(axes)
    axes.tick_params(labelsize=10)
    figure.legend(
        loc="lower center",
        ncols=3,
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        bbox_to_anchor=(0.5, 0),
        columnspacing=1,
    )
    with matplotlib.rc_context({"svg.hashsalt": "scout"}):
        FigureCanvasSVG(figure).print_svg(folder / "solved.svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("starts", "solved"), help="one of the two")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder to write into")
    options = parser.parse_args()
    if options.only != "starts":
        write_solved(options.out)
        print(options.out / "solved.svg")
    if options.only != "solved":
        write_starts(options.out, one_instance())
        print(options.out / "starts.gif", options.out / "starts.png", sep="\n")


if __name__ == "__main__":
    main()
