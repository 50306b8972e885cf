"""Boards as bits against the same moves of a numpy array."""

import jax
import numpy as np
import pytest

from envs.bitboard import Grid, select
from envs.long_board import LongGrid, grid_of

_SIZES = [(1, 1), (5, 9), (6, 7), (19, 19), (2, 32), (4, 17), (32, 1)]
_GRIDS = [*(Grid(*size) for size in _SIZES), *(LongGrid(*size) for size in _SIZES)]


def _moved(board, rows, columns):
    """Returns the bool[R, C] board moved down and to the right, squares that leave it dropped."""
    result = np.zeros_like(board)
    height, width = board.shape
    source = board[max(-rows, 0) : height - max(rows, 0), max(-columns, 0) : width - max(columns, 0)]
    result[max(rows, 0) : height - max(-rows, 0), max(columns, 0) : width - max(-columns, 0)] = source
    return result


@pytest.mark.parametrize("grid", _GRIDS, ids=str)
def test_moves_sets_and_counts_equal_numpy(grid):
    size = (grid.rows, grid.columns)
    rng = np.random.default_rng(0)
    boards = rng.random((8, grid.squares)) < 0.5
    boards[0], boards[1] = False, True
    others = rng.random((8, grid.squares)) < 0.5

    @jax.jit
    @jax.vmap
    def run(board, other):
        bits, others = grid.pack(board), grid.pack(other)
        sets = {
            "same": bits,
            "east": grid.east(bits),
            "west": grid.west(bits),
            "south": grid.south(bits),
            "north": grid.north(bits),
            "grow": grid.grow(bits),
            "and": bits & others,
            "or": bits | others,
            "xor": bits ^ others,
            "not": ~bits & grid.full(),
            "select": select(bits.any(), others, bits),
            "first": grid.first(bits),
        }
        unpacked = {name: grid.unpack(value) for name, value in sets.items()}
        order = np.arange(grid.squares)[::-1]
        places = select(bits.any(), grid.places(order), grid.places(np.arange(grid.squares)))
        turned = grid.unpack(bits, order), grid.unpack(bits, places)
        return unpacked, bits.count(), bits.any(), turned, grid.planes(bits, others)

    unpacked, count, any_set, turned, planes = jax.device_get(run(boards, others))
    for lane, (board, other) in enumerate(zip(boards, others, strict=True)):
        square = board.reshape(size)
        east, west = _moved(square, 0, 1), _moved(square, 0, -1)
        south, north = _moved(square, 1, 0), _moved(square, -1, 0)
        expected = {
            "same": board,
            "east": east,
            "west": west,
            "south": south,
            "north": north,
            "grow": square | east | west | south | north,
            "and": board & other,
            "or": board | other,
            "xor": board ^ other,
            "not": ~board,
            "select": other if board.any() else board,
            "first": board & (np.cumsum(board) == 1),
        }
        for name, value in expected.items():
            assert np.array_equal(unpacked[name][lane], value.reshape(-1)), name
        assert count[lane] == board.sum()
        assert any_set[lane] == board.any()
        for boards_turned in turned:
            assert np.array_equal(boards_turned[lane], board[::-1])
        assert np.array_equal(planes[lane], np.stack([square, other.reshape(size)], axis=-1))
    single = jax.jit(jax.vmap(lambda index: grid.unpack(grid.square(index))))(np.arange(-1, grid.squares))
    assert not single[0].any()  # square -1: the empty set
    assert np.array_equal(single[1:], np.eye(grid.squares, dtype=bool))


@pytest.mark.parametrize("grid", [Grid(5, 9), LongGrid(5, 9)], ids=str)
def test_rows_columns_and_constants(grid):
    board = np.zeros((5, 9), bool)
    board[3] = True
    assert np.array_equal(grid.unpack(grid.row(3)).reshape(5, 9), board)
    board = np.zeros((5, 9), bool)
    board[:, 8] = True
    assert np.array_equal(grid.unpack(grid.column(8)).reshape(5, 9), board)
    assert grid.unpack(grid.full()).all()
    assert not grid.unpack(grid.empty()).any()


def test_words_are_filled_with_whole_rows():
    assert (Grid(5, 9).rows_per_word, Grid(5, 9).num_words) == (3, 2)
    assert grid_of(16, 16) == Grid(16, 16) and grid_of(17, 17) == LongGrid(17, 17)


@pytest.mark.parametrize("size", [(3, 33), (3, 0), (0, 3)])
def test_impossible_grids_are_refused(size):
    with pytest.raises(ValueError, match=f"grid: got {size[0]} x {size[1]}, expected"):
        Grid(*size)


@pytest.mark.parametrize("size", [(5, 9), (2, 32), (19, 19), (4, 4)])
def test_rows_as_numbers(size):
    grid = Grid(*size)
    boards = np.random.default_rng(1).random((4, grid.squares)) < 0.5

    @jax.jit
    @jax.vmap
    def rows_of(board):
        rows = grid.to_rows(grid.pack(board))
        return rows, grid.unpack(grid.from_rows(rows))

    rows, again = rows_of(boards)
    assert (np.asarray(again) == boards).all()
    bits = boards.reshape(-1, *size) * (np.uint64(1) << np.arange(size[1], dtype=np.uint64))
    assert np.asarray(rows).tolist() == bits.sum(-1, dtype=np.uint64).tolist()


@pytest.mark.parametrize("grid", _GRIDS, ids=str)
def test_lines_through_a_square_and_its_members(grid):
    squares = np.arange(grid.squares, dtype=np.int32)
    lines = jax.jit(jax.vmap(lambda square: grid.unpack(grid.lines_through(square))))(squares)
    row, column = np.divmod(squares, grid.columns)
    expected = (row[:, None] == row) | (column[:, None] == column)
    assert (np.asarray(lines) == expected).all()
    assert (grid.members(grid.lines_through(squares[-1])) == expected[-1]).all()
