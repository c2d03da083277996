"""Lightning: it saves at the end of each epoch, and continues from the newest checkpoint.

tera run examples/train_lightning.py --gpu V100 --setup "pip install torch lightning" -- 30
"""

import os
import sys
from pathlib import Path

import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

import teraflock

EPOCHS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
CHECKPOINTS = Path(os.environ.get("TERA_CHECKPOINTS", "checkpoints"))
OUTPUTS = Path(os.environ.get("TERA_OUTPUTS", "outputs"))


class Small(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], number: int) -> torch.Tensor:
        x, y = batch
        return torch.nn.functional.mse_loss(self.layers(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def on_train_epoch_end(self) -> None:
        teraflock.progress(self.current_epoch + 1, EPOCHS)


class Renaming(ModelCheckpoint):
    """Writes to a name that is not copied, and renames it."""

    def _save_checkpoint(self, trainer: lightning.Trainer, filepath: str) -> None:
        super()._save_checkpoint(trainer, f"{filepath}.tmp")
        Path(f"{filepath}.tmp").rename(filepath)


def main() -> None:
    lightning.seed_everything(7)
    x = torch.randn(2048, 8, generator=torch.Generator().manual_seed(7))
    # The order of the data is the same in every epoch: Lightning does not save the state of a loader that shuffles.
    data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True).sin()), batch_size=64)
    saving = Renaming(dirpath=CHECKPOINTS, filename="{epoch}", save_top_k=-1, every_n_epochs=1)
    trainer = lightning.Trainer(
        max_epochs=EPOCHS,
        callbacks=[saving],
        accelerator="auto",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    saved = sorted(CHECKPOINTS.glob("*.ckpt"), key=lambda each: each.stat().st_mtime_ns)
    if saved:
        print(f"continues after {saved[-1].name}", flush=True)
    model = Small()
    trainer.fit(model, data, ckpt_path=saved[-1] if saved else None)
    total = sum(each.double().sum().item() for each in model.parameters())
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    (OUTPUTS / "result.txt").write_text(f"{total.hex()}\n")


main()
