import dataclasses
import json
import random
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from azjax.checkpoint import CheckpointError, Checkpoints
from azjax.manifest import MANIFEST, hash_file, hash_manifest, verified


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    params: dict[str, Any]
    statistics: dict[str, Any]
    optimizer: tuple[Any, ...]
    replay: dict[str, jax.Array]
    rng_key: jax.Array
    step: jax.Array


def on(devices: int) -> tuple[NamedSharding, NamedSharding]:
    """Shardings that spread an array over devices, and that repeat it on each."""
    mesh = Mesh(np.array(jax.devices()[:devices]), ("data",), axis_types=(AxisType.Auto,))
    return NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())


def make_state(seed: int = 0, devices: int = 8) -> State:
    spread, repeated = on(devices)
    rng = np.random.default_rng(seed)
    kernel = rng.standard_normal((30, 50)).astype(np.float32)
    replay = {
        "boards": rng.integers(0, 2**32, (8, 40, 6), dtype=np.uint32),
        "policy": rng.random((8, 40, 9)).astype(np.float16),
        "mover": rng.integers(-1, 2, (8, 40)).astype(np.int8),
        "ended": rng.random((8, 40)) < 0.5,
        "slots": np.zeros((8, 40, 0), np.int16),
    }
    # Copied, so that no array shares memory with numpy's and every one of them can be donated.
    return State(
        params=jax.device_put({"dense": {"kernel": jnp.array(kernel), "bias": jnp.ones(50, jnp.bfloat16)}}, repeated),
        statistics={},
        optimizer=(jax.device_put(jnp.array(seed, jnp.int32), repeated), [jax.device_put(jnp.ones(3), repeated)]),
        replay=jax.device_put(jax.tree.map(jnp.array, replay), spread),
        rng_key=jax.device_put(jax.random.key(seed), repeated),
        step=jax.device_put(jnp.array(seed, jnp.int32), repeated),
    )


def like(state: State, devices: int = 8) -> State:
    spread, repeated = on(devices)
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=repeated), state)
    replay = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=spread), state.replay)
    return dataclasses.replace(shapes, replay=replay)


def content(tree: Any) -> list[tuple[str, str, bytes]]:
    """Names, dtypes and bytes of the leaves, typed keys by their data."""
    return [
        (
            jax.tree_util.keystr(path),
            str(leaf.dtype),
            np.asarray(
                jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
            ).tobytes(),
        )
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    ]


@pytest.fixture(scope="module")
def two_steps(tmp_path_factory) -> Path:
    """Step 10 holds make_state(10), step 20 make_state(20)."""
    directory = tmp_path_factory.mktemp("two") / "checkpoints"
    with Checkpoints(directory, write=True) as checkpoints:
        for step in (10, 20):
            checkpoints.save(step, make_state(step), {"note": f"step {step}"})
    return directory


@pytest.fixture
def copied(two_steps, tmp_path) -> Path:
    return Path(shutil.copytree(two_steps, tmp_path / "checkpoints"))


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_a_state_comes_back_equal_on_the_devices_asked_for(two_steps, devices):
    expected = make_state(20)
    restored = Checkpoints(two_steps).restore(like(expected, devices))
    assert (restored.step, restored.metadata) == (20, {"note": "step 20"})
    assert content(restored.state) == content(expected)
    assert type(restored.state) is State
    shardings = jax.tree.map(lambda leaf: leaf.sharding, restored.state)
    assert shardings == jax.tree.map(lambda leaf: leaf.sharding, like(expected, devices))


def test_one_device_to_eight(tmp_path):
    state = make_state(3, devices=1)
    with Checkpoints(tmp_path, write=True) as checkpoints:
        checkpoints.save(0, state, {}, wait=True)
        restored = checkpoints.restore(like(state, 8), step=0)
    assert content(restored.state) == content(state)
    assert len(restored.state.replay["boards"].sharding.device_set) == 8


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_keys_come_back_with_their_generator(tmp_path, impl):
    state = {"keys": jax.random.split(jax.random.key(5, impl=impl), 4)}
    with Checkpoints(tmp_path, write=True) as checkpoints:
        checkpoints.save(1, state, {}, wait=True)
        for keys in (checkpoints.restore(state).state["keys"], checkpoints.load_part(1, ("keys",))["keys"]):
            assert keys.dtype == state["keys"].dtype
            np.testing.assert_array_equal(jax.random.bits(keys[2]), jax.random.bits(state["keys"][2]))


@pytest.mark.parametrize("how", ["donate", "delete"])
def test_the_state_may_be_donated_as_soon_as_save_returns(tmp_path, how):
    spread, repeated = on(8)
    shardings = {"ring": spread, "weights": repeated}
    make = jax.jit(
        lambda: {"ring": jax.lax.broadcasted_iota(jnp.uint32, (8, 200_000), 1), "weights": jnp.full(300_000, 7.0)},
        out_shardings=shardings,
    )
    advance = jax.jit(lambda state: jax.tree.map(lambda leaf: leaf + 1, state), donate_argnums=0)
    with Checkpoints(tmp_path, write=True, keep=9) as checkpoints:
        for step in range(3):
            state = make()
            checkpoints.save(step, state, {})
            if how == "delete":
                jax.tree.map(lambda leaf: leaf.delete(), state)
            for _ in range(5 if how == "donate" else 0):
                state = advance(state)
            jax.block_until_ready(make())
        for step in range(3):
            loaded = checkpoints.load_part(step, ("ring", "weights"))
            np.testing.assert_array_equal(loaded["ring"], np.tile(np.arange(200_000, dtype=np.uint32), (8, 1)))
            np.testing.assert_array_equal(loaded["weights"], np.full(300_000, 7.0, np.float32))


def test_parts_load_as_dicts_on_one_device(two_steps):
    part = Checkpoints(two_steps).load_part(None, ("params", "statistics", "optimizer", "rng_key", "replay"))
    expected = make_state(20)
    assert content(part["params"]) == content(expected.params)
    assert content(part["rng_key"]) == content(expected.rng_key)
    assert content(part["replay"]) == content(expected.replay)
    assert part["statistics"] == {}
    assert int(part["optimizer"]["0"]) == 20
    assert all(leaf.sharding.device_set == {jax.devices()[0]} for leaf in jax.tree.leaves(part))
    with pytest.raises(CheckpointError, match=r"20 holds params, .*, not weights, biases$"):
        Checkpoints(two_steps).load_part(None, ("weights", "params", "biases"))
    assert int(Checkpoints(two_steps).load_part(10, ("step",))["step"]) == 10


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "delete":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "truncate":
        path.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 2] ^= 1 << 4
        path.write_bytes(data)


@pytest.mark.parametrize("how", ["flip a bit", "truncate", "empty", "delete"])
def test_every_damaged_file_is_noticed(two_steps, tmp_path, how):
    names = [path.relative_to(two_steps / "20") for path in (two_steps / "20").rglob("*") if path.is_file()]
    assert len(names) >= 8
    state = make_state(20)
    for number, name in enumerate(names):
        if how != "delete" and not (two_steps / "20" / name).stat().st_size:
            continue
        directory = Path(shutil.copytree(two_steps, tmp_path / str(number)))
        damage(directory / "20" / name, how)
        warnings: list[str] = []
        restored = Checkpoints(directory, warn=warnings.append).restore(like(state))
        assert restored.step == 10, name
        assert content(restored.state) == content(make_state(10))
        assert len(warnings) == 1 and str(directory / "20") in warnings[0] and "\n" not in warnings[0]
        assert (directory / "20").is_dir()
        part = Checkpoints(directory, warn=warnings.append).load_part(None, ("params",))
        assert content(part["params"]) == content(make_state(10).params)
        with pytest.raises(CheckpointError, match="is damaged: "):
            Checkpoints(directory).restore(like(state), step=20)


def test_every_bit_of_a_manifest_counts(copied):
    """In steps of 37 bits. Spaces between its values are the only bytes that may change."""
    path = copied / "20" / MANIFEST
    intact = path.read_bytes()
    for bit in range(0, 8 * len(intact), 37):
        data = bytearray(intact)
        data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        try:
            found = verified(copied / "20", 20)
        except Exception as error:
            assert not isinstance(error, CheckpointError)  # which it raises of another format
        else:
            assert found == json.loads(intact)


def test_no_whole_step_is_an_error(copied, tmp_path):
    for step in ("10", "20"):
        damage(copied / step / "state" / "_METADATA", "flip a bit")
    warnings: list[str] = []
    with pytest.raises(CheckpointError, match=r"no whole checkpoint in .*, damaged: 10, 20"):
        Checkpoints(copied, warn=warnings.append).restore(like(make_state()))
    assert len(warnings) == 2
    with pytest.raises(CheckpointError, match=r"no checkpoint in .*, there are: none"):
        Checkpoints(tmp_path / "nothing").load_part(None, ("params",))
    with pytest.raises(CheckpointError, match=r"no checkpoint of step 15 in .*, there are: 10, 20"):
        Checkpoints(copied).restore(like(make_state()), step=15)


def rewrite(folder: Path, **changes: Any) -> None:
    """Changes a manifest and makes its own hash right, as another version or an attacker would."""
    manifest = json.loads((folder / MANIFEST).read_text()) | changes
    manifest["sha256"] = hash_manifest(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def test_another_format_is_refused(copied):
    rewrite(copied / "20", format_version=2)
    with pytest.raises(CheckpointError, match=r"20 has format 2, expected 1: use the azjax that wrote it$"):
        Checkpoints(copied).restore(like(make_state()))


def test_a_manifest_that_promises_too_much_or_points_outside_is_refused(copied):
    leaves = {"params/x": {"shape": [1 << 40], "dtype": "float32", "key": None}}
    rewrite(copied / "20", leaves=leaves)
    with pytest.raises(CheckpointError, match="its leaves need 4398046511104 bytes"):
        Checkpoints(copied).load_part(20, ("params",))
    outside = copied / "20" / "manifest.json"
    rewrite(copied / "10", files={"../20/manifest.json": hash_file(outside)})
    with pytest.raises(CheckpointError, match="is missing"):
        Checkpoints(copied).load_part(10, ("params",))


def other(state: State, **changes: Any) -> State:
    return dataclasses.replace(like(state), **changes)


def test_another_state_is_refused_with_its_fields_named(two_steps, monkeypatch):
    state = make_state()
    _, repeated = on(8)
    monkeypatch.setattr("orbax.checkpoint.v1.load", lambda *_: pytest.fail("reached Orbax"))

    def leaf(shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype, sharding=repeated)

    dense = like(state).params["dense"]
    table = [
        ({"step": leaf((), jnp.uint32)}, r"step is int32\[\], expected uint32\[\]"),
        ({"step": leaf((2,), jnp.int32)}, r"step is int32\[\], expected int32\[2\]"),
        ({"rng_key": leaf((2,), jnp.uint32)}, r"rng_key is uint32\[2\] of a threefry2x32 key, expected uint32\[2\]$"),
        (
            {"rng_key": leaf((), jax.random.key(0, impl="rbg").dtype)},
            r"rng_key is .* expected uint32\[4\] of a rbg key",
        ),
        ({"statistics": {"mean": leaf((3,), jnp.float32)}}, r"statistics/mean is nothing, expected float32\[3\]"),
        ({"params": {"dense": {"bias": dense["bias"]}}}, r"params/dense/kernel is float32\[30, 50\], expected nothing"),
        ({"params": {}, "replay": {}}, r"params/dense/bias is .*; and 4 more$"),
    ]
    for changes, message in table:
        with pytest.raises(CheckpointError, match=r"20 holds another state: " + message):
            Checkpoints(two_steps).restore(other(state, **changes))
    with pytest.raises(ValueError, match="step says no sharding"):
        Checkpoints(two_steps).restore(other(state, step=jax.ShapeDtypeStruct((), jnp.int32)))


def test_what_cannot_be_stored_is_refused(tmp_path):
    array = jnp.ones(3)
    with Checkpoints(tmp_path, write=True) as checkpoints:
        with pytest.raises(ValueError, match="count is a int, expected a jax array"):
            checkpoints.save(0, {"count": 3}, {})
        with pytest.raises(ValueError, match="'a/b' has no path of its own"):
            checkpoints.save(0, {"a/b": array}, {})
        with pytest.raises(ValueError, match="metadata must be JSON"):
            checkpoints.save(0, {"a": array}, {"loss": float("nan")})
        with pytest.raises(ValueError, match="metadata must be JSON"):
            checkpoints.save(0, {"a": array}, {"config": object()})
        with pytest.raises(ValueError, match="got write=True, step=-1"):
            checkpoints.save(-1, {"a": array}, {})
        assert checkpoints.saved_steps() == []
    with pytest.raises(ValueError, match="needs write=True and a step >= 0, got write=False, step=0"):
        Checkpoints(tmp_path).save(0, {"a": array}, {})


def test_the_newest_steps_and_every_multiple_stay(tmp_path):
    with Checkpoints(tmp_path, write=True, keep=2, keep_every=4) as checkpoints:
        for step in range(9):
            checkpoints.save(step, {"a": jnp.full(3, step)}, {})
        checkpoints.wait()
        assert checkpoints.saved_steps() == [0, 4, 7, 8]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "4", "7", "8"]


def test_a_step_saved_again_replaces_the_damaged_one_and_spares_later_ones(copied):
    damage(copied / "20" / "state" / "_METADATA", "truncate")
    with Checkpoints(copied, write=True, keep=1, warn=lambda _: None) as checkpoints:
        checkpoints.save(15, make_state(15), {}, wait=True)
        assert checkpoints.saved_steps() == [15, 20]
        assert checkpoints.restore(like(make_state())).step == 15
        checkpoints.save(20, make_state(21), {}, wait=True)
        assert checkpoints.saved_steps() == [20]
        assert content(checkpoints.restore(like(make_state())).state) == content(make_state(21))


def test_a_writer_removes_leftovers_and_a_reader_touches_nothing(copied):
    for name in ("30.new", "30.new.orbax-checkpoint-tmp", "10.old", "9.gone"):
        shutil.copytree(copied / "10", copied / name)
    (copied / "20").rename(copied / "20.old")  # killed between the two renames of a replacement
    (copied / "notes").mkdir()
    before = sorted(path.name for path in copied.iterdir())
    assert Checkpoints(copied).saved_steps() == [10]
    assert sorted(path.name for path in copied.iterdir()) == before
    assert Checkpoints(copied, write=True).saved_steps() == [10, 20]
    assert sorted(path.name for path in copied.iterdir()) == ["10", "20", "notes"]


@pytest.mark.parametrize("wait", [True, False])
def test_a_full_disk_is_one_line_and_older_steps_stay(tmp_path, capfd, wait):
    small = {"a": jnp.arange(1000)}
    large = {"a": jax.random.bits(jax.random.key(0), (2_000_000,))}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    checkpoints = Checkpoints(tmp_path, write=True)
    checkpoints.save(1, small, {}, wait=True)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
        with pytest.raises(CheckpointError) as raised:
            checkpoints.save(2, large, {}, wait=wait)
            checkpoints.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(raised.value).startswith(f"cannot save checkpoint {tmp_path / '2'}: ")
    assert "MB free there" in str(raised.value) and "\n" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert "Traceback" not in capfd.readouterr().err
    assert checkpoints.saved_steps() == [1]
    np.testing.assert_array_equal(checkpoints.restore(small).state["a"], small["a"])
    checkpoints.save(2, large, {})  # and with room again, the same object goes on
    checkpoints.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]


# Saves without end; a line names a step once it is acknowledged. Its last words are what the kill must not lose.
WRITER = """
import sys
import jax.numpy as jnp
from azjax.checkpoint import Checkpoints

checkpoints = Checkpoints(sys.argv[1], write=True, keep=2)
step = max(checkpoints.saved_steps(), default=0)
while True:
    step += 1
    checkpoints.save(step, {"a": jnp.full(300_000, step), "b": jnp.full(5, step)}, {"step": step}, wait=True)
    print(step, flush=True)
"""


def kill_writers(directory: Path, times: int) -> None:
    moments = random.Random(0)
    target = {"a": jnp.zeros(300_000, jnp.int32), "b": jnp.zeros(5, jnp.int32)}
    for _ in range(times):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(directory)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(moments.uniform(0, 0.3))
        writer.kill()
        acknowledged = int((first + writer.stdout.read()).split()[-1])
        writer.wait()
        writer.stdout.close()
        warnings: list[str] = []
        restored = Checkpoints(directory, warn=warnings.append).restore(target)
        assert restored.step in (acknowledged, acknowledged + 1)  # killed before it could say so
        assert restored.metadata == {"step": restored.step}
        assert all((np.asarray(leaf) == restored.step).all() for leaf in restored.state.values())
        assert warnings == []


def test_killed_writers_lose_no_acknowledged_step(tmp_path):
    kill_writers(tmp_path, 5)


@pytest.mark.slow
def test_writers_killed_often_lose_no_acknowledged_step(tmp_path):
    kill_writers(tmp_path, 25)
