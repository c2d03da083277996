"""The `Trainer` of Hugging Face: its checkpoints go to $TERA_CHECKPOINTS, and it continues from the newest one.

tera run examples/train_trainer.py --gpu V100 --setup "pip install torch transformers accelerate" -- 2000

The `Trainer` saves weights, optimizer, learning rate, random state and its position in the data. It writes a folder
file by file, so this script lets it write next to $TERA_CHECKPOINTS, and then renames it.
"""

import os
import shutil
import sys
from pathlib import Path

import torch
from torch.utils.data import Dataset
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

import teraflock

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
SAVE_EVERY = 50
CHECKPOINTS = Path(os.environ.get("TERA_CHECKPOINTS", "checkpoints"))
OUTPUTS = Path(os.environ.get("TERA_OUTPUTS", "outputs"))


class Points(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        x = torch.randn(8, generator=torch.Generator().manual_seed(index))
        return {"x": x, "labels": x.sum(0, keepdim=True).sin()}


class Small(PreTrainedModel):
    config_class = PretrainedConfig

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1)
        )
        self.post_init()

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        found = self.layers(x)
        return {"loss": torch.nn.functional.mse_loss(found, labels), "logits": found}


class Publish(TrainerCallback):
    """After a save: make the finished folder visible with a rename, and report the progress."""

    def on_save(self, args: TrainingArguments, state: object, control: object, **more: object) -> None:
        step = state.global_step  # type: ignore[attr-defined]
        made, shown = Path(str(args.output_dir)) / f"checkpoint-{step}", CHECKPOINTS / f"checkpoint-{step}"
        if made.exists() and not shown.exists():
            made.rename(shown)
        for old in sorted(CHECKPOINTS.glob("checkpoint-*"), key=lambda each: int(each.name[11:]))[:-2]:
            shutil.rmtree(old.rename(old.with_name(f".{old.name}")))
        teraflock.progress(step, STEPS)


def main() -> None:
    CHECKPOINTS.mkdir(parents=True, exist_ok=True)
    arguments = TrainingArguments(
        output_dir=str(CHECKPOINTS.parent / "saving"),
        max_steps=STEPS,
        per_device_train_batch_size=32,
        save_steps=SAVE_EVERY,
        learning_rate=1e-3,
        seed=7,
        report_to=[],
        disable_tqdm=True,
        logging_steps=SAVE_EVERY,
    )
    torch.manual_seed(7)
    trainer = Trainer(
        model=Small(PretrainedConfig()), args=arguments, train_dataset=Points(), callbacks=[Publish()]
    )
    last = get_last_checkpoint(str(CHECKPOINTS))
    if last:
        print(f"continues after {Path(last).name}", flush=True)
    trainer.train(resume_from_checkpoint=last)
    total = sum(each.double().sum().item() for each in trainer.model.parameters())
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    (OUTPUTS / "result.txt").write_text(f"{total.hex()}\n")


main()
