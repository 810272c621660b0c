"""The Accelerator: one face for everything a training function needs, under the names that Accelerate gave it."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import IO, Any, TypeVar

import torch

from ..backends.group import GroupOptions
from ..data.loader import LoadersInUse
from ..tensors import collective
from .accumulation import Accumulation, no_sync
from .evaluation import gather_real
from .joining import take_place
from .metrics import MetricLog
from .options import (
    AutocastKwargs,
    DataLoaderConfiguration,
    DistributedDataParallelKwargs,
    GradientAccumulationPlugin,
    GradScalerKwargs,
    Handlers,
    InitProcessGroupKwargs,
    accumulation_plugin,
    loader_options,
)
from .precision import choose_precision
from .preparation import Choices, Preparation
from .progress import Tracked
from .rank import Rank
from .replicate import joined, sync_in_next_backward, unwrap
from .saving import save_whole

T = TypeVar("T")
Module = torch.nn.Module


class Accelerator(Rank):
    """Trains on this rank as part of all ranks.

    Args:
        device_placement: prepared objects and their batches are put on the rank's device.
        split_batches: a loader's batch size is that of all ranks together, not of each.
        mixed_precision: "no", "fp16" or "bf16"; None: what the launcher was told, else "no".
        gradient_accumulation_steps: backward passes for one optimizer step; None: what the launcher was told, else 1.
        cpu: keep off a GPU that is there.
        dataloader_config: how loaders share their data.
        project_dir: where the project's files go; None: what the launcher was told.
        gradient_accumulation_plugin: accumulation in more detail, instead of ``gradient_accumulation_steps``.
        step_scheduler_with_optimizer: a scheduler moves only when the optimizer has; False: whenever it is told to.
        kwargs_handlers: arguments for DDP, the gradient scaler, the process group and autocast.

    Raises SettingsError for a precision that is not known or that the device lacks. The names and their behaviour are
    those of Accelerate 1.15, https://huggingface.co/docs/accelerate.
    """

    def __init__(
        self,
        device_placement: bool = True,
        split_batches: bool = False,
        mixed_precision: str | None = None,
        gradient_accumulation_steps: int | None = None,
        cpu: bool = False,
        dataloader_config: DataLoaderConfiguration | None = None,
        *,
        project_dir: str | os.PathLike[str] | None = None,
        gradient_accumulation_plugin: GradientAccumulationPlugin | None = None,
        step_scheduler_with_optimizer: bool = True,
        kwargs_handlers: list[Any] | None = None,
    ) -> None:
        handlers = Handlers(kwargs_handlers)
        group = handlers.get(InitProcessGroupKwargs)
        place = take_place(cpu, GroupOptions(group.backend, group.init_method, group.timeout))
        super().__init__(place)
        context = place.context
        self._reporter = context.reporter
        self.project_dir = context.project_dir if project_dir is None else project_dir
        loaders = loader_options(dataloader_config, split_batches)
        self._precision = choose_precision(
            mixed_precision or context.mixed_precision,
            place.backend,
            handlers.get(AutocastKwargs),
            handlers.get(GradScalerKwargs),
        )
        plugin = accumulation_plugin(
            gradient_accumulation_plugin, gradient_accumulation_steps, context.gradient_accumulation_steps
        )
        in_use = LoadersInUse()
        self._accumulation = Accumulation(plugin, context.reporter.boundary, in_use)
        choices = Choices(
            device_placement, loaders, handlers.get(DistributedDataParallelKwargs), step_scheduler_with_optimizer
        )
        self._prepared = Preparation(place, self._precision, self._accumulation, in_use, choices)
        self._metrics = MetricLog(context.reporter, self._accumulation, place.backend.read_later)
        self._triggered = False
        self._scale = self._precision.scale

    @property
    def mixed_precision(self) -> str:
        """ "no", "fp16" or "bf16"."""
        return self._precision.name

    @property
    def split_batches(self) -> bool:
        """Whether a loader's batch size is that of all ranks together."""
        return self._prepared.choices.loaders.split_batches

    @property
    def even_batches(self) -> bool:
        """Whether loaders prepared from now on give every rank the same number of equal batches; settable."""
        return self._prepared.choices.loaders.even_batches

    @even_batches.setter
    def even_batches(self, even: bool) -> None:
        self._prepared.choices.loaders.even_batches = even

    @property
    def non_blocking(self) -> bool:
        """Whether batches are copied to the device while the host goes on."""
        return self._prepared.choices.loaders.non_blocking

    # Making ready

    def prepare(self, *args: Any, device_placement: Sequence[bool | None] | None = None) -> Any:
        """The objects made ready for this rank, in the order given; a single one by itself.

        Models, optimizers, loaders and schedulers are recognised, anything else comes back as it is.
        ``device_placement`` has one entry for each object; raises ValueError when it has not.
        """
        placements = [None] * len(args) if device_placement is None else list(device_placement)
        if len(placements) != len(args):
            raise ValueError(
                f"device_placement needs one entry for each of the {len(args)} objects; you passed {len(placements)}."
            )
        result = self._prepared.all(args, placements)
        return result[0] if len(result) == 1 else tuple(result)

    def prepare_model(
        self, model: Module, device_placement: bool | None = None, evaluation_mode: bool = False
    ) -> Module:
        """The model on its device, under autocast, its gradients averaged over ranks (not in ``evaluation_mode``)."""
        return self._prepared.model(model, device_placement, evaluation_mode)

    def prepare_optimizer(self, optimizer: torch.optim.Optimizer, device_placement: bool | None = None) -> Any:
        """An optimizer that steps when the gradients are complete."""
        return self._prepared.optimizer(optimizer, device_placement)

    def prepare_data_loader(
        self, data_loader: torch.utils.data.DataLoader[Any], device_placement: bool | None = None
    ) -> Any:
        """A loader of this rank's batches."""
        return self._prepared.loader(data_loader, device_placement)

    def prepare_scheduler(self, scheduler: torch.optim.lr_scheduler.LRScheduler) -> Any:
        """A scheduler that moves when its optimizer does."""
        return self._prepared.scheduler(scheduler)

    def unwrap_model(self, model: Module, keep_fp32_wrapper: bool = True, keep_torch_compile: bool = True) -> Module:
        """The user's own model; without ``keep_fp32_wrapper`` its forward pass is its own again too."""
        return unwrap(model, keep_fp32_wrapper, keep_torch_compile)

    def free_memory(self, *objects: Any) -> list[None]:
        """Let go of everything prepared and give memory back; as many None as there were objects, to assign them."""
        count = len(objects)
        del objects
        self._prepared.forget()
        self._accumulation.step = 0
        gc.collect()
        self._backend.release_memory()
        return [None] * count

    clear = free_memory

    # Training

    def backward(self, loss: torch.Tensor, **kwargs: Any) -> None:
        """``loss.backward(**kwargs)``, the loss divided by ``gradient_accumulation_steps`` and scaled for fp16.

        A window that the end of a loader cuts short is divided by the full number too, as in Accelerate.
        """
        accumulation = self._accumulation
        accumulation.backwards += 1
        if accumulation.num_steps != 1:
            loss = loss / accumulation.num_steps
        self._scale(loss).backward(**kwargs)  # type: ignore[no-untyped-call]  # torch has no types here

    def accumulate(self, *models: Module) -> AbstractContextManager[None]:
        """One backward pass in the block; optimizers step and ranks exchange gradients when it completes a window."""
        return self._accumulation.window(models)

    def no_sync(self, model: Module) -> AbstractContextManager[None]:
        """Backward passes in the block leave the model's gradients on their ranks."""
        return no_sync(model)

    @staticmethod
    def trigger_sync_in_backward(model: Module) -> AbstractContextManager[None]:
        """Backward passes in the block exchange gradients although the forward pass ran under ``no_sync``."""
        return sync_in_next_backward(model)

    def join_uneven_inputs(
        self, joinables: Sequence[Any], even_batches: bool | None = None
    ) -> AbstractContextManager[None]:
        """A loop whose ranks may have different numbers of batches, around these prepared models.

        ``even_batches`` overrides that of the prepared loaders in the block; nothing happens on one rank.
        """
        if not self.use_distributed:
            return nullcontext()
        even = self.even_batches if even_batches is None else even_batches
        return joined(joinables, self._prepared.loaders, even)

    @property
    def sync_gradients(self) -> bool:
        """Whether this backward pass completes a window; settable."""
        return self._accumulation.sync_gradients

    @sync_gradients.setter
    def sync_gradients(self, complete: bool) -> None:
        self._accumulation.sync_gradients = complete

    @property
    def gradient_accumulation_steps(self) -> int:
        """Backward passes for one optimizer step; settable."""
        return self._accumulation.num_steps

    @gradient_accumulation_steps.setter
    def gradient_accumulation_steps(self, steps: int) -> None:
        self._accumulation.num_steps = steps

    @property
    def gradient_state(self) -> Accumulation:
        """``sync_gradients``, ``end_of_dataloader``, ``remainder`` and the like."""
        return self._accumulation

    def autocast(self, autocast_handler: AutocastKwargs | None = None) -> AbstractContextManager[Any]:
        """Operations in the block choose their precision, as those of a prepared model do."""
        return self._precision.autocast(autocast_handler)

    @property
    def scaler(self) -> torch.amp.GradScaler | None:
        """The gradient scaler of fp16, else None."""
        return self._precision.scaling.scaler if self._precision.scaling else None

    @property
    def optimizer_step_was_skipped(self) -> bool:
        """Whether fp16 gradients overflowed, so that the last step did not happen."""
        return any(optimizer.step_was_skipped for optimizer in self._prepared.optimizers)

    def unscale_gradients(self, optimizer: Any = None) -> None:
        """Divide the fp16 loss scale out of the gradients of these prepared optimizers (None: of all)."""
        chosen = self._prepared.optimizers if optimizer is None else optimizer
        for item in chosen if isinstance(chosen, list | tuple) else [chosen]:
            item.unscale()

    def clip_grad_norm_(self, parameters: Any, max_norm: float, norm_type: float = 2) -> torch.Tensor:
        """Scale the gradients down to a total norm of ``max_norm``; the norm they had."""
        parameters = self._prepared.unscaled(parameters)
        return torch.nn.utils.clip_grad_norm_(parameters, max_norm, norm_type=norm_type)

    def clip_grad_value_(self, parameters: Any, clip_value: float) -> None:
        """Cut every gradient to the range from ``-clip_value`` to ``clip_value``."""
        torch.nn.utils.clip_grad_value_(self._prepared.unscaled(parameters), clip_value)

    # Between ranks

    def gather(self, tensor: Any) -> Any:
        """The ranks' tensors, alone or nested, joined along dimension 0 in the order of ranks."""
        return collective.gather(self._group, tensor) if self.use_distributed else tensor

    def gather_for_metrics(self, input_data: Any, use_gather_object: bool = False) -> Any:
        """As ``gather``, without the samples that filled up a loader's last batches; lists of other objects too."""
        if not self.use_distributed:
            return input_data
        real = self._accumulation.remainder if self._accumulation.end_of_dataloader else 0
        return gather_real(self._group, input_data, real, use_gather_object)

    def reduce(self, tensor: Any, reduction: collective.Reduction = "sum", scale: float = 1.0) -> Any:
        """The ranks' tensors, alone or nested, combined by "sum", "mean", "max" or not ("none"), times ``scale``."""
        return collective.reduce(self._group, self._world.size, tensor, reduction, scale)

    def pad_across_processes(self, tensor: Any, dim: int = 0, pad_index: float = 0, pad_first: bool = False) -> Any:
        """Tensors as long in dimension ``dim`` as the longest among the ranks, filled with ``pad_index``."""
        return collective.pad_across_processes(self._group, tensor, dim, pad_index, pad_first)

    def set_trigger(self) -> None:
        """Raise a flag that ``check_trigger`` shows to all ranks."""
        self._triggered = True

    def check_trigger(self) -> bool:
        """Whether any rank has raised its flag, which this lowers; called by all ranks."""
        flags = self._group.all_reduce(torch.tensor(int(self._triggered), device=self.device), "sum")
        raised = bool(flags.item())
        self._triggered = self._triggered and not raised
        return raised

    # Results

    def log(self, values: Mapping[str, Any], step: int | None = None) -> None:
        """Append one record to the run's history, from any rank.

        Args:
            values: names and floats, integers, booleans, one-element tensors, numpy numbers or strings; nested
                dicts are joined with "/". A tensor's value is that of now, and the device is not waited for.
            step: None: the newest backward pass (from 0), or the step after the last automatic one of these names.

        Raises TypeError and ValueError for what is not a single value, naming it.
        """
        self._metrics.log(values, step)

    def track(self, iterable: Iterable[T], description: str | None = None, total: float | None = None) -> Tracked[T]:
        """The iterable under a progress bar, nested as the loops are; a prepared loader's own bar is renamed."""
        return Tracked(iterable, description, total, self._reporter)

    def save(self, obj: Any, f: str | os.PathLike[str] | IO[bytes]) -> None:
        """``torch.save`` on rank 0; a file is complete or not there."""
        if self.is_main_process:
            save_whole(obj, f)

    def __deepcopy__(self, memo: dict[int, Any]) -> Accelerator:
        return self

    def __repr__(self) -> str:
        world = self._world
        return (
            f"Accelerator(rank {world.rank} of {world.size}, {self.device}, mixed_precision={self.mixed_precision!r})"
        )
