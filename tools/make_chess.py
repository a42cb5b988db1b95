"""Make the bundled chess data: games of a weak engine, judged move by move by a strong one.

An engine of limited strength ("the agent", always White) plays against itself. After every move
of the agent the position is judged: by the same engine at full strength, by a very shallow search
of it, and by the material on the board. The outcome is whether the agent wins.

A game stops at a budget of the agent's moves, as agent benchmarks do; its outcome then counts as
not observed. The game is played on all the same, so that the file also says how it would have
ended.

Needs the Stockfish engine (Debian: stockfish) and the Python package chess:

    python tools/make_chess.py --games 360 --out trajscore/datasets/data/chess.csv.gz

Searches are limited by nodes, with one thread and a cleared hash, so the same engine version
makes the same games again.
"""

import argparse
import gzip
import math
import random
import shutil
from pathlib import Path

import chess
import chess.engine

BUDGET = 60  # moves of the agent after which a game is cut
LONGEST = 300  # plies after which a game is adjudicated a draw (it was cut long before)
PAWNS = {chess.PAWN: 1, chess.KNIGHT: 3, chess.BISHOP: 3, chess.ROOK: 5, chess.QUEEN: 9}
HEADER = "game,move,engine,shallow,material,outcome,stop_reason,final_outcome"


def material_forecast(board: chess.Board) -> float:
    """Win probability of White from the pawn count alone, on the usual logistic scale."""
    balance = sum(
        value * (len(board.pieces(piece, chess.WHITE)) - len(board.pieces(piece, chess.BLACK)))
        for piece, value in PAWNS.items()
    )
    return 1 / (1 + math.exp(-0.6 * balance))


def win_forecast(engine: chess.engine.SimpleEngine, board: chess.Board, nodes: int) -> float:
    """Win probability of White by the engine's own win-draw-loss model."""
    if board.is_game_over(claim_draw=True):
        return 1.0 if board.result(claim_draw=True) == "1-0" else 0.0
    info = engine.analyse(board, chess.engine.Limit(nodes=nodes), game=object())
    return info["wdl"].white().wins / 1000


def open_engine(path: str, options: dict[str, object]) -> chess.engine.SimpleEngine:
    """Start an engine with one thread and a small hash."""
    engine = chess.engine.SimpleEngine.popen_uci(path)
    engine.configure({"Threads": 1, "Hash": 16, **options})
    return engine


def play(
    player: chess.engine.SimpleEngine,
    judge: chess.engine.SimpleEngine,
    rng: random.Random,
    args: argparse.Namespace,
) -> tuple[list[tuple[float, float, float]], bool]:
    """Play one game; return the forecasts after each of the agent's moves, and whether it won."""
    board = chess.Board()
    for _ in range(args.random_plies):
        board.push(rng.choice(list(board.legal_moves)))
    skill = {chess.WHITE: rng.randint(*args.skill), chess.BLACK: rng.randint(*args.skill)}
    game, forecasts = object(), []
    while not board.is_game_over(claim_draw=True) and board.ply() < LONGEST:
        # a seeded share of random moves makes games differ: the engine itself plays the same
        # move in the same position
        if rng.random() < args.blunders:
            board.push(rng.choice(list(board.legal_moves)))
        else:
            player.configure({"Skill Level": skill[board.turn]})
            limit = chess.engine.Limit(nodes=args.play_nodes)
            board.push(player.play(board, limit, game=game).move)
        if board.turn == chess.BLACK:  # the agent has just moved
            cut = len(forecasts) >= BUDGET
            forecasts.append(
                (0.0, 0.0, 0.0)
                if cut
                else (
                    win_forecast(judge, board, args.judge_nodes),
                    win_forecast(judge, board, args.shallow_nodes),
                    material_forecast(board),
                )
            )
    return forecasts, board.result(claim_draw=True) == "1-0"


def rows(game: int, forecasts: list[tuple[float, float, float]], won: bool) -> list[str]:
    """Write one game as lines of the table."""
    cut = len(forecasts) > BUDGET
    outcome, reason = ("", "max_steps") if cut else (str(int(won)), "game_over")
    return [
        f"g{game:03d},{move},{strong:.3f},{shallow:.3f},{material:.3f},{outcome},{reason},{int(won)}"
        for move, (strong, shallow, material) in enumerate(forecasts[:BUDGET], start=1)
    ]


def main() -> None:
    """Make the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--games", type=int, default=360)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", default=shutil.which("stockfish") or "/usr/games/stockfish")
    parser.add_argument("--play-nodes", type=int, default=400)
    parser.add_argument("--judge-nodes", type=int, default=20_000)
    parser.add_argument("--shallow-nodes", type=int, default=1)
    parser.add_argument("--random-plies", type=int, default=6)
    parser.add_argument("--blunders", type=float, default=0.08)
    parser.add_argument("--skill", type=int, nargs=2, default=(0, 3))
    parser.add_argument("--out", type=Path, default=Path("chess.csv.gz"))
    args = parser.parse_args()

    player = open_engine(args.engine, {})
    judge = open_engine(args.engine, {"UCI_ShowWDL": True})
    lines = [HEADER]
    for game in range(args.games):
        # one generator a game: a game does not depend on how many were made before it
        forecasts, won = play(player, judge, random.Random(f"{args.seed}-{game}"), args)
        if forecasts:
            lines += rows(game, forecasts, won)
        if game % 20 == 19:
            print(f"{game + 1} games, {len(lines) - 1} rows", flush=True)
    name = judge.id.get("name")
    player.quit()
    judge.quit()
    text = "\n".join(lines) + "\n"
    args.out.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{name}: {args.games} games, {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
