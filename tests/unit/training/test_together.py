"""Ranks together: evaluation, roles, turns, files, seeds, bars."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from parity.starting import Recorder, run_ranks
from torch.utils.data import DataLoader, TensorDataset

from notebook_accel.data.splitting import split_inputs
from notebook_accel.training.accelerator import Accelerator
from notebook_accel.training.options import DataLoaderConfiguration
from notebook_accel.training.randomness import set_seed
from notebook_accel.training.saving import save_whole

EVALUATIONS = [
    (samples, batch, split) for samples in (1, 4, 7, 8, 11, 12) for batch in (2, 4) for split in (False, True)
]


def evaluate() -> list[list[int]]:
    """What an evaluation sees in each of the cases."""
    seen = []
    for samples, batch, split in EVALUATIONS:
        accelerator = Accelerator(split_batches=split)
        data = TensorDataset(torch.arange(samples), torch.arange(samples) * 2)
        loader = accelerator.prepare(DataLoader(data, batch_size=batch))
        numbers: list[int] = []
        for number, double in loader:
            result = accelerator.gather_for_metrics({"n": number, "pair": (double, [double.half()])})
            assert torch.equal(result["n"] * 2, result["pair"][0])
            assert torch.equal(result["pair"][0], result["pair"][1][0].long())
            numbers += result["n"].tolist()
        seen.append(numbers)
    return seen


@pytest.mark.parametrize("size", [1, 2])
def test_an_evaluation_sees_every_sample_once(size: int) -> None:
    expected = [list(range(samples)) for samples, _, _ in EVALUATIONS]
    for seen in run_ranks(evaluate, size):
        assert seen == expected


def evaluate_objects() -> dict[str, Any]:
    accelerator = Accelerator()
    data = [{"text": str(i), "value": float(i)} for i in range(5)]
    loader = accelerator.prepare(DataLoader(data, batch_size=2))  # type: ignore[arg-type]  # a list is a dataset too
    texts, mixed, of_dicts, forced = [], [], [], []
    for batch in loader:
        texts += accelerator.gather_for_metrics(batch["text"])
        pair = accelerator.gather_for_metrics({"text": batch["text"], "value": batch["value"]})
        mixed += list(zip(pair["text"], pair["value"].tolist(), strict=True))
        of_dicts += accelerator.gather_for_metrics([{"text": text} for text in batch["text"]])
        forced += accelerator.gather_for_metrics([batch["value"][:1]], use_gather_object=True)
    after = accelerator.gather_for_metrics(torch.ones(3))
    return {"texts": texts, "mixed": mixed, "of dicts": of_dicts, "forced": len(forced), "after": len(after)}


def test_an_evaluation_of_objects() -> None:
    first, second = run_ranks(evaluate_objects, 2)
    assert first == second
    assert first["texts"] == [str(i) for i in range(5)]
    assert first["mixed"] == [(str(i), float(i)) for i in range(5)]
    assert first["of dicts"] == [{"text": str(i)} for i in range(5)]
    assert first["forced"] == 3
    assert first["after"] == 6


def shuffled() -> dict[str, list[list[int]]]:
    """The order of samples over all ranks, in two epochs, by how it was seeded."""
    data = TensorDataset(torch.arange(9))
    result = {}
    for name in ("drawn", "data_seed", "generator", "seedable"):
        # Only rank 0's state may count.
        torch.manual_seed(5 if int(os.environ["RANK"]) == 0 else 6)
        config = DataLoaderConfiguration(
            data_seed=3 if name == "data_seed" else None, use_seedable_sampler=name == "seedable"
        )
        accelerator = Accelerator(dataloader_config=config)
        generator = torch.Generator().manual_seed(8) if name == "generator" else None
        loader = accelerator.prepare(DataLoader(data, batch_size=2, shuffle=True, generator=generator))
        epochs = []
        for _ in range(2):
            parts = [accelerator.gather_for_metrics(batch) for (batch,) in loader]
            epochs.append(torch.cat(parts).tolist())
        result[name] = epochs
    return result


def test_shuffling_agrees_and_follows_the_seed() -> None:
    first, second = run_ranks(shuffled, 2)
    assert first == second == run_ranks(shuffled, 2)[0]
    orders = [tuple(epoch) for epochs in first.values() for epoch in epochs]
    assert len(set(orders)) == len(orders)
    assert all(sorted(order) == list(range(9)) for order in orders)
    (alone,) = run_ranks(shuffled, 1)
    assert alone["data_seed"] == first["data_seed"]
    assert alone["seedable"] == first["seedable"]


def roles() -> dict[str, Any]:
    accelerator = Accelerator()
    called = []

    @accelerator.on_main_process
    def on_main(value: int) -> int:
        """The main one."""
        return value

    decorators = {
        "main": accelerator.on_main_process(),
        "local main": accelerator.on_local_main_process,
        "last": accelerator.on_last_process,
        "one": accelerator.on_process(process_index=1),
        "local one": accelerator.on_local_process(local_process_index=1),
    }
    for name, decorate in decorators.items():
        decorate(lambda name=name: called.append(name))()
    accelerator.print("printed by", accelerator.process_index)
    triggers = [accelerator.check_trigger()]
    if accelerator.process_index == 1:
        accelerator.set_trigger()
    triggers += [accelerator.check_trigger(), accelerator.check_trigger()]
    with accelerator.split_between_processes([1, 2, 3], apply_padding=True) as part:
        return {"value": on_main(3), "doc": on_main.__doc__, "called": called, "triggers": triggers, "part": part}


def test_roles() -> None:
    first, second = run_ranks(roles, 2)
    assert (first["value"], second["value"]) == (3, None)
    assert first["doc"] == second["doc"] == "The main one."
    assert first["called"] == ["main", "local main"]
    assert second["called"] == ["last", "one", "local one"]
    assert first["triggers"] == second["triggers"] == [False, True, False]
    assert (first["part"], second["part"]) == ([1, 2], [3, 3])


def test_a_rank_that_is_alone_plays_every_role(capsys: pytest.CaptureFixture[str]) -> None:
    accelerator = Accelerator(cpu=True)
    assert accelerator.on_process(lambda: 1, process_index=3)() == 1
    assert accelerator.on_last_process(lambda: 2)() == 2
    accelerator.print("a", "b", sep="-")
    assert capsys.readouterr().out == "a-b\n"


def turns(folder: str, fail: bool) -> list[str]:
    accelerator = Accelerator()
    try:
        with accelerator.main_process_first():
            seen = sorted(os.listdir(folder))
            Path(folder, str(accelerator.process_index)).touch()
            if fail and accelerator.is_main_process:
                raise RuntimeError("of the main process")
    except RuntimeError:
        pass
    return seen


@pytest.mark.parametrize("fail", [False, True])
def test_the_main_process_goes_first_and_lets_the_others_in_whatever_happens(tmp_path: Path, fail: bool) -> None:
    assert run_ranks(turns, 2, str(tmp_path), fail) == [[], ["0"]]


@pytest.mark.parametrize(
    ("inputs", "pad", "expected"),
    [
        ([1, 2, 3, 4], False, [[1, 2], [3], [4]]),
        ((1, 2, 3, 4), True, [(1, 2), (3, 4), (4, 4)]),
        ([1], True, [[1], [1], [1]]),
        ([1], False, [[1], [], []]),
        ([], True, [[], [], []]),
        (
            {"a": [1, 2, 3], "b": ["x", "z", "w"]},
            False,
            [{"a": [1], "b": ["x"]}, {"a": [2], "b": ["z"]}, {"a": [3], "b": ["w"]}],
        ),
    ],
)
def test_split(inputs: Any, pad: bool, expected: list[Any]) -> None:
    before = repr(inputs)
    assert [split_inputs(inputs, rank, 3, pad) for rank in range(3)] == expected
    assert repr(inputs) == before


def test_split_tensors() -> None:
    parts = [split_inputs(torch.arange(4).reshape(4, 1), rank, 3, True).flatten().tolist() for rank in range(3)]
    assert parts == [[0, 1], [2, 3], [3, 3]]


def test_split_refusals() -> None:
    with pytest.raises(ValueError, match=r"need one length; yours have \{'a': 1, 'b': 2\}"):
        split_inputs({"a": [1], "b": [1, 2]}, 0, 2)
    with pytest.raises(TypeError, match=r"you passed 3 \(int\)\. Use list\(\.\.\.\) of it"):
        split_inputs(3, 0, 2)


def save(folder: str) -> list[str]:
    accelerator = Accelerator()
    accelerator.save({"rank": accelerator.process_index}, Path(folder, "state.pt"))
    accelerator.wait_for_everyone()
    return os.listdir(folder)


def test_the_main_process_saves(tmp_path: Path) -> None:
    assert run_ranks(save, 2, str(tmp_path)) == [["state.pt"], ["state.pt"]]
    assert torch.load(tmp_path / "state.pt") == {"rank": 0}
    (tmp_path / "plain").touch()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("state.pt", "plain")]
    assert modes[0] == modes[1]


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "state.pt"
    save_whole({"good": 1}, target)
    with pytest.raises(Exception, match="pickle"):
        save_whole({"bad": lambda: None}, target)
    assert os.listdir(tmp_path) == ["state.pt"]
    assert torch.load(target) == {"good": 1}


def test_seeds_repeat() -> None:
    draws = []
    for seed in (3, 3, 4):
        set_seed(seed)
        draws.append((random.random(), float(np.random.rand()), torch.rand(1).item()))
    assert draws[0] == draws[1]
    assert all(first != other for first, other in zip(draws[0], draws[2], strict=True))


def specific_draw() -> tuple[float, float]:
    set_seed(3)
    same = torch.rand(1).item()
    set_seed(3, device_specific=True)
    return same, torch.rand(1).item()


def test_seeds_may_differ_by_rank() -> None:
    (first, own), (second, other) = run_ranks(specific_draw, 2)
    assert first == second == own != other


def test_deterministic() -> None:
    set_seed(1, deterministic=True)
    try:
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def bars(recorder: Recorder) -> list[tuple[str, float, float | None, str, bool]]:
    return [(bar.description, bar.n, bar.total, bar.unit, bar.done) for bar in recorder.bars]


def loader_of(samples: int) -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.ones(samples, 1)), batch_size=1)


def test_prepared_loaders_have_bars(recorder: Recorder) -> None:
    accelerator = Accelerator()
    model, loader, evaluation = accelerator.prepare(torch.nn.Linear(1, 1), loader_of(2), loader_of(3))
    for _ in range(2):
        model.train()
        for _ in loader:
            pass
        model.eval()
        for _ in evaluation:
            pass
    with torch.no_grad():
        model.train()
        list(loader)
    assert [(name, n) for name, n, *_ in bars(recorder)] == [
        ("epoch 1", 2),
        ("eval", 3),
        ("epoch 2", 2),
        ("eval", 3),
        ("eval", 2),
    ]
    assert bars(recorder)[0] == ("epoch 1", 2, 2, "batch", True)


def test_any_loop_has_a_bar(recorder: Recorder) -> None:
    accelerator = Accelerator()
    tracked = accelerator.track(range(2), "epochs")
    assert len(tracked) == 2
    for _ in tracked:
        assert list(accelerator.track(letter for letter in "abc")) == ["a", "b", "c"]
    list(accelerator.track(iter("ab"), "letters", total=5))
    assert bars(recorder) == [
        ("epochs", 2, 2, "it", True),
        ("loop", 3, None, "it", True),
        ("loop", 3, None, "it", True),
        ("letters", 2, 5, "it", True),
    ]


def test_a_tracked_loader_has_one_bar(recorder: Recorder) -> None:
    accelerator = Accelerator()
    loader = accelerator.prepare(loader_of(3))
    list(accelerator.track(loader, "validation", total=9))
    list(accelerator.track(loader))
    assert bars(recorder) == [("validation", 3, 9, "batch", True), ("epoch 2", 3, 3, "batch", True)]
    assert len(accelerator.track(loader)) == 3


def test_a_loop_that_is_left_has_a_bar_that_is_done(recorder: Recorder) -> None:
    for i in Accelerator().track(range(10)):
        if i == 2:
            break
    assert bars(recorder) == [("loop", 2, 10, "it", True)]
