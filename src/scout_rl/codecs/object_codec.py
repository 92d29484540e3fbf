"""What our codecs share: they store the attributes of the environment object, and check where a state comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scout_rl.codecs.attributes import Capture, Restore
from scout_rl.codecs.codec import Env, Start, State, installed, restart
from scout_rl.files.archive import Array, pack_json
from scout_rl.files.refusal import Refusal


class ObjectCodec:
    """States with the attributes of the environment object; a subclass captures and restores them."""

    key: str
    libraries: tuple[str, ...] = ()
    """The packages whose version a state depends on."""
    exact = True
    """Whether a restored environment must show the same observations as the uninterrupted one."""

    @property
    def library(self) -> dict[str, str]:
        """The versions that this codec's states depend on."""
        return {name: installed(name) for name in self.libraries}

    def set_state(self, env: Env, state: State, *, generators: bool = True) -> Start:
        """Start an episode in ``state``; ``generators=False`` lets the live random generators run on."""
        if state.codec != self.key:
            raise Refusal(f"this state was written by the {state.codec!r} codec, not by {self.key!r}.")
        for name, version in self.library.items():
            written_with = state.library.get(name)
            if written_with != version:
                raise Refusal(
                    f"this state was written with {name} {written_with}, and {name} {version} is installed: "
                    f"states are exact within one version only, so record it again."
                )
        base = env.unwrapped
        self.check(base, state)
        return restart(env, lambda: self.restore(base, state, generators))

    def check(self, base: Env, state: State) -> None:
        """Refuse a state that does not fit the environment."""

    def restore(self, base: Env, state: State, generators: bool) -> Start:
        """Put ``state`` into the innermost environment; returns its observation and info."""
        raise NotImplementedError

    def left_out(self, env: Env) -> list[str]:
        """Attributes that a state does not hold and that are no constants."""
        return self._capture(env.unwrapped).left_out

    def _capture(self, base: Env) -> Capture:
        raise NotImplementedError

    def _restore_attributes(self, base: Env, state: State, generators: bool) -> None:
        if state.memory is not None:
            state.memory.restore(base, generators=generators)
        else:
            Restore(base, *state.attributes, generators=generators).attributes()

    def _state(self, captured: Capture, arrays: Mapping[str, Array], memory: Any = None) -> State:
        attributes = {f"attributes/{name}": array for name, array in captured.arrays.items()}
        every = {**arrays, "attributes": pack_json(captured.value), **attributes}
        return State(every, self.key, self.library, memory, tuple(captured.left_out) if memory is not None else ())
