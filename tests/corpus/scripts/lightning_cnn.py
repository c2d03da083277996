import torch, torch.nn as nn, torch.nn.functional as F, torchvision, pytorch_lightning as pl
from torch.utils.data import DataLoader, TensorDataset
class Classifier(pl.LightningModule):
    def __init__(self, lr=0.05): super().__init__(); self.lr = lr; self.net = torchvision.models.resnet18(weights=None, num_classes=10); self.net.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False); self.net.maxpool = nn.Identity()
    def training_step(self, batch, i): x, y = batch; out = F.log_softmax(self.net(x), 1); loss = F.nll_loss(out, y); self.log("train_loss", loss); return loss
    def configure_optimizers(self): opt = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9, weight_decay=5e-4); return {"optimizer": opt, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=100), "interval": "step"}}
data = TensorDataset(torch.randn(4096, 3, 32, 32), torch.randint(0, 10, (4096,)))
pl.Trainer(max_steps=48, accelerator="gpu", devices=1, precision="bf16-mixed", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False).fit(Classifier(), DataLoader(data, batch_size=256, shuffle=True, num_workers=2))
